// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestDecodeSubscriptions(t *testing.T) {
	tests := map[string]struct {
		file   string
		name   string
		sample backlog.SubscriptionSample
	}{
		"a Failover subscription does not count what is unacknowledged": {
			"4.0.8-topic-stats-failover-p2.json", "", backlog.SubscriptionSample{Type: backlog.Failover},
		},
		"a Key_Shared subscription": {
			"4.0.8-topic-stats-keyshared-p2.json", "", backlog.SubscriptionSample{Type: backlog.KeyShared},
		},
		"a stopped function keeps its subscription and has no consumers": {
			"4.0.8-topic-stats-function-stopped.json", "", backlog.SubscriptionSample{Type: backlog.Shared},
		},
		"a function on 4.2.4": {
			"4.2.4-topic-stats-function-p2.json", "", backlog.SubscriptionSample{Type: backlog.Shared},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			content := fixture(t, tt.file)
			partitions, err := decodeStats(bytes.NewReader(content))
			require.NoError(t, err)
			require.Len(t, partitions, 1)
			require.Len(t, partitions[0].Subscriptions, 1)
			twin := dumbDecode(t, content)
			require.Equal(t, twin, partitions[0].Subscriptions[0], "the decoder agrees with a walk through a generic map")
			require.Equal(t, tt.sample.Type, twin.Type)
		})
	}
}

// dumbDecode reads the only subscription of an answer with none of the decoder's structs.
func dumbDecode(t *testing.T, content []byte) backlog.SubscriptionSample {
	t.Helper()
	var answer map[string]any
	require.NoError(t, json.Unmarshal(content, &answer))
	var sample backlog.SubscriptionSample
	for name, raw := range answer["subscriptions"].(map[string]any) {
		s := raw.(map[string]any)
		sample = backlog.SubscriptionSample{
			Name:              name,
			Type:              backlog.SubscriptionType(s["type"].(string)),
			BacklogEntries:    int64(s["msgBacklog"].(float64)),
			DelayedMessages:   int64(s["msgDelayed"].(float64)),
			UnackedMessages:   int64(s["unackedMessages"].(float64)),
			DeliveredMessages: int64(s["msgOutCounter"].(float64)),
			Blocked:           s["blockedSubscriptionOnUnackedMsgs"].(bool),
		}
		for _, raw := range s["consumers"].([]any) {
			c := raw.(map[string]any)
			metadata := c["metadata"].(map[string]any)
			sample.Consumers = append(sample.Consumers, backlog.ConsumerSample{
				ID:        metadata["id"].(string) + "#" + metadata["instance_id"].(string),
				MeanBatch: int64(c["avgMessagesPerEntry"].(float64)),
			})
		}
	}
	return sample
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
		"nothing odd":                         {sample: good},
		"a negative backlog is no number":     {map[string]any{"msgBacklog": -2}, good, "subscription a/b/c: msgBacklog is -2"},
		"a missing backlog is not 0":          {map[string]any{"msgBacklog": "missing"}, good, "subscription a/b/c: msgBacklog is missing"},
		"a backlog of null is not 0":          {map[string]any{"msgBacklog": nil}, good, "subscription a/b/c: msgBacklog is missing"},
		"a backlog with a fraction":           {map[string]any{"msgBacklog": 1.5}, good, "subscriptions.msgBacklog is a number 1.5"},
		"a backlog beyond 64 bits":            {map[string]any{"msgBacklog": json.Number("9223372036854775808")}, good, "subscriptions.msgBacklog is a number 9223372036854775808"},
		"a backlog in quotes":                 {map[string]any{"msgBacklog": "3"}, good, "subscriptions.msgBacklog is a string"},
		"a negative counter":                  {map[string]any{"msgOutCounter": -1}, good, "subscription a/b/c: msgOutCounter is -1"},
		"a missing counter":                   {map[string]any{"msgOutCounter": "missing"}, good, "subscription a/b/c: msgOutCounter is missing"},
		"missing unacked messages":            {map[string]any{"unackedMessages": "missing"}, good, "subscription a/b/c: msgDelayed or unackedMessages is missing"},
		"missing delayed messages":            {map[string]any{"msgDelayed": "missing"}, good, "subscription a/b/c: msgDelayed or unackedMessages is missing"},
		"negative unacked messages become 0":  {map[string]any{"unackedMessages": -49860}, with(func(s *backlog.SubscriptionSample) { s.UnackedMessages = 0 }), ""},
		"negative delayed messages become 0":  {map[string]any{"msgDelayed": -1}, with(func(s *backlog.SubscriptionSample) { s.DelayedMessages = 0 }), ""},
		"no type is type None":                {map[string]any{"type": nil}, with(func(s *backlog.SubscriptionSample) { s.Type = backlog.NoType }), ""},
		"a type of a later Pulsar is kept":    {map[string]any{"type": "Queue"}, with(func(s *backlog.SubscriptionSample) { s.Type = "Queue" }), ""},
		"consumers may be missing":            {map[string]any{"consumers": "missing"}, good, ""},
		"a field that nobody knows is passed": {map[string]any{"newInPulsar6": []any{1}}, good, ""},
		"a consumer without metadata, or with half of it, goes by its name": {
			map[string]any{"consumers": []any{
				map[string]any{"consumerName": "plain", "avgMessagesPerEntry": -3},
				map[string]any{"consumerName": "half", "avgMessagesPerEntry": 20, "metadata": map[string]any{"id": "a/b/c"}},
				map[string]any{"consumerName": "null", "metadata": nil},
				map[string]any{"consumerName": "x1y2z", "metadata": map[string]any{"id": "a/b/c", "instance_id": "0"}},
			}},
			with(func(s *backlog.SubscriptionSample) {
				s.Consumers = []backlog.ConsumerSample{{ID: "plain"}, {ID: "half", MeanBatch: 20}, {ID: "null"}, {ID: "a/b/c#0"}}
			}), "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			partitions, err := decodeStats(strings.NewReader(subscription(tt.changes)))
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []backlog.PartitionSample{{
				Index: backlog.NotPartitioned, PublishedMessages: 9, Subscriptions: []backlog.SubscriptionSample{tt.sample},
			}}, partitions)
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
		"negative published": `{"msgInCounter":-1,"subscriptions":{}}`,
	} {
		t.Run(name+" is no state of a topic", func(t *testing.T) {
			_, err := decodeStats(strings.NewReader(body))
			require.Error(t, err)
		})
	}
	for name, body := range map[string]string{"no count": `{}`, "negative": `{"partitions":-1}`, "not a number": `{"partitions":"2"}`} {
		t.Run(name+" is no number of partitions", func(t *testing.T) {
			_, err := decodePartitions(strings.NewReader(body))
			require.Error(t, err)
			_, err = decodePartitionedStats(strings.NewReader(`{"metadata":`+body+`,"partitions":{}}`), "a", 0)
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
		"partitions of null":                {`{"metadata":{"partitions":1},"partitions":null}`, "<nil> where an object should be"},
		"a partition of null":               {`{"metadata":{"partitions":1},"partitions":{"` + name + `-partition-0":null}}`, "msgInCounter is missing"},
		"no partitions where none are said": {`{"metadata":{"partitions":0},"partitions":{}}`, "0 partitions where 1 were known"},
		"a number of partitions beyond all reason is not counted up to": {
			`{"metadata":{"partitions":2147483647},"partitions":{}}`,
			"2147483647 of 2147483647 partitions are missing (0, 1, 2, 3, 4, ...): a broker did not answer, or they were deleted (pulsar-admin topics create-missed-partitions)",
		},
		"an answer that is cut off": {`{"metadata":{"partitions":1},"partitions":{` + one, "EOF"},
		"two answers":               {`{"metadata":{"partitions":1},"partitions":{` + one + `}}{}`, "more than one JSON value"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			partitions, err := decodePartitionedStats(strings.NewReader(tt.body), "persistent://public/default/dp", 1)
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				require.Nil(t, partitions)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []backlog.PartitionSample{{Index: 0, PublishedMessages: 4, Subscriptions: []backlog.SubscriptionSample{}}}, partitions)
		})
	}
}
