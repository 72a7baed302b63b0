// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// TestDecodeRecordedAnswers compares what the decoder makes of every recorded answer with a walk through a generic map.
func TestDecodeRecordedAnswers(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		content := fixture(t, filepath.Base(file))
		var answer map[string]any
		if json.Unmarshal(content, &answer) != nil || answer["subscriptions"] == nil {
			continue // a list, or of another kind
		}
		_, partitioned := answer["partitions"]
		for _, asked := range []backlog.Detail{backlog.Slim, everything} {
			t.Run(filepath.Base(file), func(t *testing.T) {
				if !partitioned {
					got, err := decodeStats(bytes.NewReader(content), asked)
					require.NoError(t, err)
					require.Equal(t, []backlog.PartitionSample{dumbDecode(answer, backlog.NotPartitioned, asked)}, got.partitions)
					return
				}
				var want []backlog.PartitionSample
				name := ""
				for key, raw := range answer["partitions"].(map[string]any) {
					at := strings.LastIndex(key, "-partition-")
					if at < 0 {
						continue
					}
					index, err := strconv.Atoi(key[at+len("-partition-"):])
					require.NoError(t, err)
					name = key[:at]
					want = append(want, dumbDecode(raw.(map[string]any), index, asked))
				}
				got, err := decodePartitionedStats(bytes.NewReader(content), name, 0, asked)
				if len(want) != int(answer["metadata"].(map[string]any)["partitions"].(float64)) {
					require.Error(t, err)
					return
				}
				require.NoError(t, err)
				slices.SortFunc(want, func(a, b backlog.PartitionSample) int { return a.Index - b.Index })
				require.Equal(t, want, got.partitions)
			})
		}
	}
}

// dumbDecode reads one TopicStats with none of the decoder's structs.
func dumbDecode(answer map[string]any, index int, asked backlog.Detail) backlog.PartitionSample {
	number := func(from map[string]any, name string) int64 {
		value, _ := from[name].(float64)
		return int64(value)
	}
	text := func(from map[string]any, name string) string {
		value, _ := from[name].(string)
		return value
	}
	sample := backlog.PartitionSample{Index: index, PublishedMessages: number(answer, "msgInCounter"), Subscriptions: []backlog.SubscriptionSample{}}
	for name, raw := range answer["subscriptions"].(map[string]any) {
		s := raw.(map[string]any)
		subscription := backlog.SubscriptionSample{
			Name:              name,
			Type:              backlog.SubscriptionType(text(s, "type")),
			BacklogEntries:    number(s, "msgBacklog"),
			DelayedMessages:   number(s, "msgDelayed"),
			UnackedMessages:   number(s, "unackedMessages"),
			DeliveredMessages: number(s, "msgOutCounter"),
			InReplayEntries:   number(s, "msgInReplay"),
			Blocked:           s["blockedSubscriptionOnUnackedMsgs"].(bool),
			DrainingHashes:    number(s, "drainingHashesCount"),
			ActiveConsumer:    text(s, "activeConsumerName"),
		}
		for field, value := range s {
			if strings.HasPrefix(field, "dispatchThrottled") {
				subscription.ThrottledEvents += int64(value.(float64))
			}
		}
		if asked.Has(backlog.Bytes) {
			subscription.BacklogBytes = max(0, number(s, "backlogSize"))
		}
		if at := number(s, "earliestMsgPublishTimeInBacklog"); asked.Has(backlog.Age) && at > 0 {
			subscription.EarliestPublishTime = time.UnixMilli(at)
		}
		if asked.Has(backlog.Full) {
			for _, raw := range s["consumers"].([]any) {
				subscription.Consumers = append(subscription.Consumers, dumbConsumer(raw.(map[string]any), number, text))
			}
		}
		sample.Subscriptions = append(sample.Subscriptions, subscription)
	}
	slices.SortFunc(sample.Subscriptions, func(a, b backlog.SubscriptionSample) int { return strings.Compare(a.Name, b.Name) })
	return sample
}

func dumbConsumer(c map[string]any, number func(map[string]any, string) int64, text func(map[string]any, string) string) backlog.ConsumerSample {
	metadata, _ := c["metadata"].(map[string]any)
	sample := backlog.ConsumerSample{
		ID: text(c, "consumerName"), Name: text(c, "consumerName"), MeanBatch: number(c, "avgMessagesPerEntry"),
		Permits: number(c, "availablePermits"), UnackedMessages: number(c, "unackedMessages"),
	}
	if metadata["id"] != nil && metadata["instance_id"] != nil {
		sample.ID = text(metadata, "id") + "#" + text(metadata, "instance_id")
		sample.Component = text(metadata, "id")
	}
	return sample
}

func TestDecodeDetails(t *testing.T) {
	tests := map[string]struct {
		asked   backlog.Detail
		changes map[string]any
		answer  backlog.Detail
		bytes   int64
		oldest  time.Time
	}{
		"what was not asked for is passed over": {
			changes: map[string]any{"backlogSize": 5, "earliestMsgPublishTimeInBacklog": 7},
		},
		"what was asked for is there": {
			asked:   backlog.Precise | backlog.Bytes | backlog.Age,
			changes: map[string]any{"backlogSize": 5, "earliestMsgPublishTimeInBacklog": 7},
			answer:  backlog.Precise | backlog.Bytes | backlog.Age, bytes: 5, oldest: time.UnixMilli(7),
		},
		"nothing waits": {
			asked: backlog.Age, changes: map[string]any{"earliestMsgPublishTimeInBacklog": -1}, answer: backlog.Age,
		},
		"a broker that does not know the parameters says nothing": {
			asked: backlog.Bytes | backlog.Age, changes: map[string]any{},
		},
		"a broker that was not asked, as far as it knows": {
			asked: backlog.Bytes | backlog.Age, changes: map[string]any{"backlogSize": -1, "earliestMsgPublishTimeInBacklog": 0},
		},
		"a time that cannot be": {
			asked: backlog.Age | backlog.Bytes, changes: map[string]any{"backlogSize": 0, "earliestMsgPublishTimeInBacklog": -2}, answer: backlog.Bytes,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := decodeStats(strings.NewReader(subscription(tt.changes)), tt.asked)
			require.NoError(t, err)
			require.Equal(t, tt.answer, got.detail)
			s := got.partitions[0].Subscriptions[0]
			require.Equal(t, tt.bytes, s.BacklogBytes)
			require.True(t, tt.oldest.Equal(s.EarliestPublishTime))
		})
	}
}

// subscription is an answer of /stats with one subscription that has the given fields changed.
func subscription(changes map[string]any) string {
	fields := map[string]any{
		"type": "Shared", "msgBacklog": 3, "msgOutCounter": 7, "msgDelayed": 1, "unackedMessages": 2,
		"blockedSubscriptionOnUnackedMsgs": true, "consumers": []any{},
	}
	for name, value := range changes {
		fields[name] = value
		if value == "missing" {
			delete(fields, name)
		}
	}
	content, err := json.Marshal(map[string]any{"msgInCounter": 9, "subscriptions": map[string]any{"a/b/c": fields}})
	if err != nil {
		panic(err)
	}
	return string(content)
}

func TestDecodeOddNumbers(t *testing.T) {
	good := backlog.SubscriptionSample{
		Name: "a/b/c", Type: backlog.Shared, BacklogEntries: 3, DeliveredMessages: 7, DelayedMessages: 1, UnackedMessages: 2, Blocked: true,
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
		"nothing odd":                        {sample: good},
		"a negative backlog is no number":    {map[string]any{"msgBacklog": -2}, good, "subscription a/b/c: msgBacklog is -2"},
		"a missing backlog is not 0":         {map[string]any{"msgBacklog": "missing"}, good, "subscription a/b/c: msgBacklog is missing"},
		"a backlog of null is not 0":         {map[string]any{"msgBacklog": nil}, good, "subscription a/b/c: msgBacklog is missing"},
		"a backlog with a fraction":          {map[string]any{"msgBacklog": 1.5}, good, "subscription a/b/c: msgBacklog is a number 1.5"},
		"a backlog beyond 64 bits":           {map[string]any{"msgBacklog": json.Number("9223372036854775808")}, good, "subscription a/b/c: msgBacklog is a number 9223372036854775808"},
		"a backlog in quotes":                {map[string]any{"msgBacklog": "3"}, good, "subscription a/b/c: msgBacklog is a string"},
		"a negative counter":                 {map[string]any{"msgOutCounter": -1}, good, "subscription a/b/c: msgOutCounter is -1"},
		"a missing counter":                  {map[string]any{"msgOutCounter": "missing"}, good, "subscription a/b/c: msgOutCounter is missing"},
		"missing unacked messages":           {map[string]any{"unackedMessages": "missing"}, good, "subscription a/b/c: msgDelayed or unackedMessages is missing"},
		"missing delayed messages":           {map[string]any{"msgDelayed": "missing"}, good, "subscription a/b/c: msgDelayed or unackedMessages is missing"},
		"negative unacked messages become 0": {map[string]any{"unackedMessages": -49860}, with(func(s *backlog.SubscriptionSample) { s.UnackedMessages = 0 }), ""},
		"negative delayed messages become 0": {map[string]any{"msgDelayed": -1}, with(func(s *backlog.SubscriptionSample) { s.DelayedMessages = 0 }), ""},
		"no type is type None":               {map[string]any{"type": nil}, with(func(s *backlog.SubscriptionSample) { s.Type = backlog.NoType }), ""},
		"a type of a later Pulsar is kept":   {map[string]any{"type": "Queue"}, with(func(s *backlog.SubscriptionSample) { s.Type = "Queue" }), ""},
		"negative replays become 0":          {map[string]any{"msgInReplay": -1, "drainingHashesCount": -1}, good, ""},
		"what holds dispatch back is told": {
			map[string]any{
				"msgInReplay": 18, "drainingHashesCount": 3, "activeConsumerName": "x1", "dispatchThrottledMsgEventsBySubscriptionLimit": 1,
				"dispatchThrottledBytesEventsBySubscriptionLimit": 2, "dispatchThrottledMsgEventsByTopicLimit": 4, "dispatchThrottledBytesEventsByTopicLimit": 8,
				"dispatchThrottledMsgEventsByBrokerLimit": 16, "dispatchThrottledBytesEventsByBrokerLimit": 32,
			},
			with(func(s *backlog.SubscriptionSample) {
				s.InReplayEntries, s.DrainingHashes, s.ActiveConsumer, s.ThrottledEvents = 18, 3, "x1", 63
			}), "",
		},
		"consumers may be missing":            {map[string]any{"consumers": "missing"}, good, ""},
		"a field that nobody knows is passed": {map[string]any{"newInPulsar6": []any{1}}, good, ""},
		"a consumer without metadata, or with half of it, goes by its name": {
			map[string]any{"consumers": []any{
				map[string]any{"consumerName": "plain", "avgMessagesPerEntry": -3},
				map[string]any{"consumerName": "half", "avgMessagesPerEntry": 20, "metadata": map[string]any{"id": "a/b/c"}},
				map[string]any{"consumerName": "null", "metadata": nil},
				map[string]any{"consumerName": "x1y2z", "availablePermits": -490, "unackedMessages": 500, "metadata": map[string]any{
					"id": "a/b/c", "instance_id": "0", "application": "pulsar-function", "instance_hostname": "c-0", "more": []any{map[string]any{}},
				}},
				map[string]any{"consumerName": "odd", "unackedMessages": -1, "metadata": map[string]any{"id": "4711", "instance_id": "0"}},
				map[string]any{"consumerName": "sink", "metadata": map[string]any{"id": "a/b/s", "application": "pulsar-sink"}},
			}},
			with(func(s *backlog.SubscriptionSample) {
				s.Consumers = []backlog.ConsumerSample{
					{ID: "plain", Name: "plain"},
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
			answer, err := decodeStats(strings.NewReader(subscription(tt.changes)), backlog.Full)
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []backlog.PartitionSample{{
				Index: backlog.NotPartitioned, PublishedMessages: 9, Subscriptions: []backlog.SubscriptionSample{tt.sample},
			}}, answer.partitions)
		})
	}
}

func TestDecodeWhatIsNotAnAnswer(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":            "",
		"null":               "null",
		"a list":             "[]",
		"two values":         `{"msgInCounter":0,"subscriptions":{}} {}`,
		"no subscriptions":   `{"msgInCounter":0}`,
		"cut off":            `{"msgInCounter":0,"subscriptions":{}`,
		"one name twice":     `{"msgInCounter":0,"subscriptions":{"a":{"msgBacklog":0,"msgOutCounter":0,"msgDelayed":0,"unackedMessages":0},"a":{"msgBacklog":0,"msgOutCounter":0,"msgDelayed":0,"unackedMessages":0}}}`,
		"negative published": `{"msgInCounter":-1,"subscriptions":{}}`,
	} {
		t.Run(name+" is no state of a topic", func(t *testing.T) {
			_, err := decodeStats(strings.NewReader(body), backlog.Full)
			require.Error(t, err)
		})
	}
	for name, body := range map[string]string{"no count": `{}`, "negative": `{"partitions":-1}`, "not a number": `{"partitions":"2"}`} {
		t.Run(name+" is no number of partitions", func(t *testing.T) {
			_, err := decodePartitions(strings.NewReader(body))
			require.Error(t, err)
			_, err = decodePartitionedStats(strings.NewReader(`{"metadata":`+body+`,"partitions":{}}`), "a", 0, backlog.Slim)
			require.Error(t, err)
		})
	}
}

func TestDecodePartitionsInAnyOrderOfKeys(t *testing.T) {
	const name = "persistent://public/default/dp"
	const one = `"persistent://public/default/dp-partition-0":{"msgInCounter":4,"subscriptions":{}}`
	tests := map[string]struct {
		body string
		err  string
	}{
		"metadata may come last":            {`{"partitions":{` + one + `},"subscriptions":{"s":[{}]},"metadata":{"partitions":1}}`, ""},
		"sums may be anything":              {`{"msgInCounter":-5,"subscriptions":null,"metadata":{"partitions":1},"partitions":{` + one + `}}`, ""},
		"a partition that comes twice":      {`{"metadata":{"partitions":1},"partitions":{` + one + `,` + one + `}}`, "it names partitions that the topic should not have"},
		"partitions that come twice":        {`{"metadata":{"partitions":1},"partitions":{` + one + `},"partitions":{` + one + `}}`, "it names partitions that the topic should not have"},
		"partitions of null":                {`{"metadata":{"partitions":1},"partitions":null}`, "null where an object should be"},
		"a partition of null":               {`{"metadata":{"partitions":1},"partitions":{"` + name + `-partition-0":null}}`, "null where an object should be"},
		"no partitions where none are said": {`{"metadata":{"partitions":0},"partitions":{}}`, "0 partitions where 1 were known"},
		"a number of partitions beyond all reason is not counted up to": {
			`{"metadata":{"partitions":2147483647},"partitions":{}}`,
			"2147483647 of 2147483647 partitions are missing (0, 1, 2, 3, 4, ...): a broker did not answer, or they were deleted (pulsar-admin topics create-missed-partitions)",
		},
		"an answer that is cut off": {`{"metadata":{"partitions":1},"partitions":{` + one, "unexpected EOF"},
		"two answers":               {`{"metadata":{"partitions":1},"partitions":{` + one + `}}{}`, "more than one JSON value"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			answer, err := decodePartitionedStats(strings.NewReader(tt.body), "persistent://public/default/dp", 1, backlog.Slim)
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				require.Zero(t, answer)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []backlog.PartitionSample{{Index: 0, PublishedMessages: 4, Subscriptions: []backlog.SubscriptionSample{}}}, answer.partitions)
		})
	}
}
