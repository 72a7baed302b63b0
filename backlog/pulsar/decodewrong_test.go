// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestDecodeOddNumbers(t *testing.T) {
	good := backlog.SubscriptionSample{
		Name: "a/b/c", Type: backlog.Shared, BacklogEntries: 3, DeliveredMessages: 7, DelayedMessages: 1, UnackedMessages: 2,
		Blocked: true,
	}
	with := func(change func(*backlog.SubscriptionSample)) backlog.SubscriptionSample {
		changed := good
		change(&changed)
		return changed
	}
	tests := map[string]struct {
		changes map[string]any
		sample  backlog.SubscriptionSample
		err     string
	}{
		"no odd numbers": {sample: good},
		"a negative backlog is no number": {
			map[string]any{"msgBacklog": -2},
			good,
			"subscription a/b/c: msgBacklog is -2",
		},
		"a missing backlog is not 0": {
			map[string]any{"msgBacklog": "missing"},
			good,
			"subscription a/b/c: msgBacklog is missing",
		},
		"a backlog of null is not 0": {
			map[string]any{"msgBacklog": nil},
			good,
			"subscription a/b/c: msgBacklog is missing",
		},
		"a backlog with a fraction": {
			map[string]any{"msgBacklog": 1.5},
			good,
			"subscription a/b/c: msgBacklog is a number 1.5",
		},
		"a backlog beyond 64 bits": {
			map[string]any{"msgBacklog": json.Number("9223372036854775808")},
			good,
			"subscription a/b/c: msgBacklog is 9223372036854775808, " + errTooLarge.Error(),
		},
		"a backlog in quotes": {
			map[string]any{"msgBacklog": "3"},
			good,
			"subscription a/b/c: msgBacklog is a string",
		},
		"a negative counter": {
			map[string]any{"msgOutCounter": -1},
			good,
			"subscription a/b/c: msgOutCounter is -1",
		},
		"a missing counter": {
			map[string]any{"msgOutCounter": "missing"},
			good,
			"subscription a/b/c: msgOutCounter is missing",
		},
		"missing unacked messages": {
			map[string]any{"unackedMessages": "missing"},
			good,
			"subscription a/b/c: msgDelayed or unackedMessages is missing",
		},
		"missing delayed messages": {
			map[string]any{"msgDelayed": "missing"},
			good,
			"subscription a/b/c: msgDelayed or unackedMessages is missing",
		},
		"negative unacked messages become 0": {
			map[string]any{"unackedMessages": -49860},
			with(func(s *backlog.SubscriptionSample) { s.UnackedMessages = 0 }), "",
		},
		"negative delayed messages become 0": {
			map[string]any{"msgDelayed": -1},
			with(func(s *backlog.SubscriptionSample) { s.DelayedMessages = 0 }), "",
		},
		"no type is type None": {
			map[string]any{"type": nil},
			with(func(s *backlog.SubscriptionSample) { s.Type = backlog.NoType }), "",
		},
		"a type that Pulsar does not have": {
			map[string]any{"type": "Queue"},
			good,
			"subscription a/b/c: type is Queue, which is no subscription type of Pulsar",
		},
		"negative replays become 0": {map[string]any{"msgInReplay": -1, "drainingHashesCount": -1}, good, ""},
		"reports why dispatch is stopped": {
			map[string]any{
				"msgInReplay": 18, "drainingHashesCount": 3,
				"dispatchThrottledMsgEventsBySubscriptionLimit":   1,
				"dispatchThrottledBytesEventsBySubscriptionLimit": 2, "dispatchThrottledMsgEventsByTopicLimit": 4,
				"dispatchThrottledBytesEventsByTopicLimit": 8,
				"dispatchThrottledMsgEventsByBrokerLimit":  16, "dispatchThrottledBytesEventsByBrokerLimit": 32,
			},
			with(func(s *backlog.SubscriptionSample) {
				s.InReplayEntries, s.DrainingHashes, s.ThrottledEvents = 18, 3, 63
			}), "",
		},
		"consumers may be missing":    {map[string]any{"consumers": "missing"}, good, ""},
		"an unknown field is skipped": {map[string]any{"newInPulsar6": []any{1}}, good, ""},
		"a consumer without complete metadata has its name as ID": {
			map[string]any{"consumers": []any{
				map[string]any{
					"consumerName": "plain", "avgMessagesPerEntry": -3,
					"connectedSince": "2026-11-21T18:39:24.394900799+01:00",
				},
				map[string]any{"consumerName": "timeless", "connectedSince": "yesterday"},
				map[string]any{"consumerName": "half", "avgMessagesPerEntry": 20, "metadata": map[string]any{"id": "a/b/c"}},
				map[string]any{"consumerName": "null", "metadata": nil},
				map[string]any{
					"consumerName": "x1y2z", "availablePermits": -490, "unackedMessages": 500,
					"metadata": map[string]any{
						"id": "a/b/c", "instance_id": "0", "application": "pulsar-function", "instance_hostname": "c-0",
						"more": []any{map[string]any{}},
					},
				},
				map[string]any{
					"consumerName": "odd", "unackedMessages": -1,
					"metadata": map[string]any{"id": "4711", "instance_id": "0"},
				},
				map[string]any{"consumerName": "sink", "metadata": map[string]any{"id": "a/b/s", "application": "pulsar-sink"}},
			}},
			with(func(s *backlog.SubscriptionSample) {
				s.Consumers = []backlog.ConsumerSample{
					{ID: "plain", Name: "plain", ConnectedSince: time.Date(2026, 11, 21, 17, 39, 24, 394900799, time.UTC)},
					{ID: "timeless", Name: "timeless"},
					{ID: "half", Name: "half", MeanBatch: 20},
					{ID: "null", Name: "null"},
					{ID: "a/b/c#0", Name: "x1y2z", Component: "a/b/c", Permits: -490, UnackedMessages: 500},
					{ID: "4711#0", Name: "odd"},
					{ID: "sink", Name: "sink", Component: "a/b/s"},
				}
			}), "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			answer, err := decodeStats(strings.NewReader(subscription(tt.changes)), backlog.Request{Detail: backlog.Full})
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []backlog.PartitionSample{{
				Index: backlog.NotPartitioned, PublishedMessages: 9, Subscriptions: []backlog.SubscriptionSample{tt.sample},
			}}, answer.Partitions)
		})
	}
}

// TestDecodeRefusesRepeatedKeys: encoding/json would take the last value, and which one is true is not known.
func TestDecodeRefusesRepeatedKeys(t *testing.T) {
	const counters = `"msgBacklog":1,"msgOutCounter":0,"msgDelayed":0,"unackedMessages":0`
	topic := func(subscription string) string {
		return `{"msgInCounter":0,"subscriptions":{"a":{` + subscription + `}}}`
	}
	consumer := func(more string) string { return topic(counters + `,"consumers":[{"consumerName":"x",` + more + `}]`) }
	stats := func(r io.Reader) error {
		_, err := decodeStats(r, backlog.Request{Detail: backlog.Full})
		return err
	}
	partitions := func(r io.Reader) error { _, err := decodePartitions(r); return err }
	whole := func(r io.Reader) error { _, err := decodePartitionedStats(r, "a", 0, backlog.Request{}); return err }
	entries := func(r io.Reader) error { _, err := decodeAddedEntries(r); return err }
	small := func(r io.Reader) error { var into map[string]any; return decodeJSON(r, &into) }
	for name, test := range map[string]struct {
		decode    func(io.Reader) error
		body, err string
	}{
		"a counter of the topic": {stats, `{"msgInCounter":1,"msgInCounter":2,"subscriptions":{}}`, "msgInCounter comes twice"},
		"subscriptions":          {stats, `{"msgInCounter":1,"subscriptions":{},"subscriptions":{}}`, "subscriptions comes twice"},
		"a backlog":              {stats, topic(counters + `,"msgBacklog":0`), "subscription a: msgBacklog comes twice"},
		"a null, and a backlog":  {stats, topic(`"msgBacklog":null,` + counters), "subscription a: msgBacklog comes twice"},
		"a type": {
			stats, topic(counters + `,"type":"Shared","type":"Failover"`), "subscription a: type comes twice",
		},
		"a flag": {
			stats, topic(counters + `,"blockedSubscriptionOnUnackedMsgs":true,"blockedSubscriptionOnUnackedMsgs":false`),
			"subscription a: blockedSubscriptionOnUnackedMsgs comes twice",
		},
		"a cause of throttling": {
			stats, topic(counters + `,"dispatchThrottledMsgEventsByTopicLimit":1,"dispatchThrottledMsgEventsByTopicLimit":1`),
			"subscription a: dispatchThrottledMsgEventsByTopicLimit comes twice",
		},
		"consumers": {stats, topic(counters + `,"consumers":[],"consumers":[]`), "subscription a: consumers comes twice"},
		"a counter of a consumer": {
			stats, consumer(`"unackedMessages":1,"unackedMessages":2`), "subscription a: unackedMessages comes twice",
		},
		"an instance": {
			stats, consumer(`"metadata":{"instance_id":"0","instance_id":"1"}`), "subscription a: instance_id comes twice",
		},
		"partitions": {partitions, `{"partitions":1,"partitions":2}`, "the number of partitions comes twice"},
		"metadata": {
			whole, `{"metadata":{"partitions":1},"metadata":{"partitions":0},"partitions":{}}`, "metadata comes twice",
		},
		"entries": {
			entries, `{"entriesAddedCounter":1,"entriesAddedCounter":1}`, "entriesAddedCounter comes twice",
		},
		"a key of a function worker": {small, `{"instances":[{"status":{"running":true,"running":false}}]}`, "running comes twice"},
	} {
		t.Run(name, func(t *testing.T) { require.EqualError(t, test.decode(strings.NewReader(test.body)), test.err) })
	}
	t.Run("but not in two partitions", func(t *testing.T) {
		two := `{"metadata":{"partitions":2},"partitions":{"a-partition-0":` + topic(counters) + `,"a-partition-1":` +
			topic(counters) + `}}`
		require.NoError(t, whole(strings.NewReader(two)))
	})
	t.Run("nor in two consumers", func(t *testing.T) {
		two := topic(counters + `,"consumers":[{"consumerName":"x","unackedMessages":1},{"consumerName":"y","unackedMessages":1}]`)
		require.NoError(t, stats(strings.NewReader(two)))
	})
}

func TestDecodeRefusesOtherAnswers(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":            "",
		"null":               "null",
		"a list":             "[]",
		"two values":         `{"msgInCounter":0,"subscriptions":{}} {}`,
		"no subscriptions":   `{"msgInCounter":0}`,
		"incomplete":         `{"msgInCounter":0,"subscriptions":{}`,
		"one name twice":     `{"msgInCounter":0,"subscriptions":{"a":{"msgBacklog":0,"msgOutCounter":0,"msgDelayed":0,"unackedMessages":0},"a":{"msgBacklog":0,"msgOutCounter":0,"msgDelayed":0,"unackedMessages":0}}}`,
		"negative published": `{"msgInCounter":-1,"subscriptions":{}}`,
	} {
		t.Run(name+" is no state of a topic", func(t *testing.T) {
			_, err := decodeStats(strings.NewReader(body), backlog.Request{Detail: backlog.Full})
			require.Error(t, err)
		})
	}
	for name, body := range map[string]string{
		"no count": `{}`, "negative": `{"partitions":-1}`,
		"not a number": `{"partitions":"2"}`,
	} {
		t.Run(name+" is no number of partitions", func(t *testing.T) {
			_, err := decodePartitions(strings.NewReader(body))
			require.Error(t, err)
			_, err = decodePartitionedStats(strings.NewReader(`{"metadata":`+body+`,"partitions":{}}`), "a", 0,
				backlog.Request{Detail: backlog.Slim})
			require.Error(t, err)
		})
	}
}
