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
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/reader"
)

// TestDecodeRecordedAnswers compares the decoded form of every recorded answer with a generic map.
func TestDecodeRecordedAnswers(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		content := fixture(t, filepath.Base(file))
		var answer map[string]any
		if json.Unmarshal(content, &answer) != nil || answer["subscriptions"] == nil || answer["segments"] != nil {
			continue // a list, or of another kind
		}
		_, partitioned := answer["partitions"]
		for _, wanted := range []backlog.Detail{backlog.Slim, everything} {
			t.Run(filepath.Base(file), func(t *testing.T) {
				if !partitioned {
					got, err := decodeStats(bytes.NewReader(content), backlog.Request{Detail: wanted})
					require.NoError(t, err)
					want := referenceDecode(answer, backlog.NotPartitioned, wanted)
					require.Equal(t, []backlog.PartitionSample{want}, got.Partitions)
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
					want = append(want, referenceDecode(raw.(map[string]any), index, wanted))
				}
				got, err := decodePartitionedStats(bytes.NewReader(content), name, 0, backlog.Request{Detail: wanted})
				if len(want) == 0 {
					require.Error(t, err)
					return
				}
				require.NoError(t, err)
				whole := len(want) == int(answer["metadata"].(map[string]any)["partitions"].(float64))
				require.Equal(t, whole, got.Incomplete == nil)
				slices.SortFunc(want, func(a, b backlog.PartitionSample) int { return a.Index - b.Index })
				require.Equal(t, want, got.Partitions)
			})
		}
	}
}

// referenceDecode decodes one TopicStats without the decoder's structs.
func referenceDecode(answer map[string]any, index int, wanted backlog.Detail) backlog.PartitionSample {
	number := func(from map[string]any, name string) int64 {
		value, _ := from[name].(float64)
		return int64(value)
	}
	text := func(from map[string]any, name string) string {
		value, _ := from[name].(string)
		return value
	}
	sample := backlog.PartitionSample{
		Index: index, PublishedMessages: number(answer, "msgInCounter"), PublishedBytes: number(answer, "bytesInCounter"),
		Subscriptions: []backlog.SubscriptionSample{},
	}
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
		}
		for field, value := range s {
			if strings.HasPrefix(field, "dispatchThrottled") {
				subscription.ThrottledEvents += int64(value.(float64))
			}
		}
		if wanted.Has(backlog.Bytes) {
			subscription.BacklogBytes = max(0, number(s, "backlogSize"))
		}
		if at := number(s, "earliestMsgPublishTimeInBacklog"); wanted.Has(backlog.Age) && at > 0 {
			subscription.EarliestPublishTime = time.UnixMilli(at)
		}
		if wanted.Has(backlog.Consumers) {
			for _, raw := range s["consumers"].([]any) {
				subscription.Consumers = append(subscription.Consumers, referenceConsumer(raw.(map[string]any), number, text))
			}
		}
		sample.Subscriptions = append(sample.Subscriptions, subscription)
	}
	slices.SortFunc(sample.Subscriptions,
		func(a, b backlog.SubscriptionSample) int { return strings.Compare(a.Name, b.Name) })
	return sample
}

func referenceConsumer(c map[string]any, number func(map[string]any, string) int64,
	text func(map[string]any, string) string,
) backlog.ConsumerSample {
	metadata, _ := c["metadata"].(map[string]any)
	sample := backlog.ConsumerSample{
		ID: text(c, "consumerName"), Name: text(c, "consumerName"), MeanBatch: number(c, "avgMessagesPerEntry"),
		Permits: number(c, "availablePermits"), UnackedMessages: number(c, "unackedMessages"),
	}
	if since, err := time.Parse(time.RFC3339, text(c, "connectedSince")); err == nil {
		sample.ConnectedSince = since
	}
	if metadata["id"] != nil && metadata["instance_id"] != nil {
		sample.ID = text(metadata, "id") + "#" + text(metadata, "instance_id")
		sample.Component = text(metadata, "id")
	}
	return sample
}

func TestDecodeDetails(t *testing.T) {
	tests := map[string]struct {
		wanted  backlog.Detail
		changes map[string]any
		answer  backlog.Detail
		bytes   int64
		oldest  time.Time
	}{
		"skips details that were not requested": {
			changes: map[string]any{"backlogSize": 5, "earliestMsgPublishTimeInBacklog": 7},
		},
		"reports requested details": {
			wanted:  backlog.Precise | backlog.Bytes | backlog.Age,
			changes: map[string]any{"backlogSize": 5, "earliestMsgPublishTimeInBacklog": 7},
			answer:  backlog.Precise | backlog.Bytes | backlog.Age, bytes: 5, oldest: time.UnixMilli(7),
		},
		"an empty backlog": {
			wanted: backlog.Age, changes: map[string]any{"earliestMsgPublishTimeInBacklog": -1}, answer: backlog.Age,
		},
		"a broker without the parameters reports nothing": {
			wanted: backlog.Bytes | backlog.Age, changes: map[string]any{},
		},
		"a broker that answers as without the request": {
			wanted:  backlog.Bytes | backlog.Age,
			changes: map[string]any{"backlogSize": -1, "earliestMsgPublishTimeInBacklog": 0},
		},
		"a time that cannot be": {
			wanted: backlog.Age | backlog.Bytes, changes: map[string]any{
				"backlogSize":                     0,
				"earliestMsgPublishTimeInBacklog": -2,
			}, answer: backlog.Bytes,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := decodeStats(strings.NewReader(subscription(tt.changes)), backlog.Request{Detail: tt.wanted})
			require.NoError(t, err)
			require.Equal(t, tt.answer, got.Detail)
			s := got.Partitions[0].Subscriptions[0]
			require.Equal(t, tt.bytes, s.BacklogBytes)
			require.True(t, tt.oldest.Equal(s.EarliestPublishTime))
		})
	}
}

func TestDecodeKeepsAFewNamesOfOtherSubscriptions(t *testing.T) {
	partition := func(names ...string) string {
		all := map[string]any{}
		for _, name := range names {
			all[name] = map[string]any{"msgBacklog": 0, "msgOutCounter": 0, "msgDelayed": 0, "unackedMessages": 0}
		}
		content, err := json.Marshal(map[string]any{"msgInCounter": 9, "subscriptions": all})
		require.NoError(t, err)
		return string(content)
	}
	wanted := backlog.Request{Subscriptions: []string{"me"}}
	for name, test := range map[string]struct {
		answer string
		want   backlog.OtherSubscriptions
	}{
		"none": {partition("me"), backlog.OtherSubscriptions{}},
		"some": {partition("me", "a", "b"), backlog.OtherSubscriptions{Names: []string{"a", "b"}}},
		"those of Watch": {
			partition("me", "a", reader.SubscriptionPrefix+"7"), backlog.OtherSubscriptions{Names: []string{"a"}},
		},
		"many": {
			partition("a", "b", "c", "d", "e", "f", "g"),
			backlog.OtherSubscriptions{Names: []string{"a", "b", "c", "d", "e"}, More: 2},
		},
		"a long name": {
			partition(strings.Repeat("a", 1000)), backlog.OtherSubscriptions{Names: []string{strings.Repeat("a", 200)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodeStats(strings.NewReader(test.answer), wanted)
			require.NoError(t, err)
			require.Equal(t, test.want, got.Others)
		})
	}
	const topic = "persistent://public/default/t"
	answer := `{"metadata":{"partitions":2},"partitions":{"` + topic + `-partition-0":` + partition("a", "b") + `,"` +
		topic + `-partition-1":` + partition("b", "c", "d") + `}}`
	got, err := decodePartitionedStats(strings.NewReader(answer), topic, 2, wanted)
	require.NoError(t, err)
	require.Equal(t, backlog.OtherSubscriptions{Names: []string{"a", "b", "c", "d"}}, got.Others)
}

// subscription is an answer of /stats with one subscription in which the given fields are changed.
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

func TestDecodePartitionsInAnyOrderOfKeys(t *testing.T) {
	const name = "persistent://public/default/dp"
	const one = `"persistent://public/default/dp-partition-0":{"msgInCounter":4,"subscriptions":{}}`
	tests := map[string]struct {
		body string
		err  string
	}{
		"metadata may be last": {`{"partitions":{` + one +
			`},"subscriptions":{"s":[{}]},"metadata":{"partitions":1}}`, ""},
		"sums may be any numbers": {`{"msgInCounter":-5,"subscriptions":null,"metadata":{"partitions":1},"partitions":{` + one +
			`}}`, ""},
		"a partition that occurs twice": {
			`{"metadata":{"partitions":1},"partitions":{` + one + `,` + one + `}}`,
			"it names partitions that the topic should not have",
		},
		"partitions that occur twice": {`{"metadata":{"partitions":1},"partitions":{` + one + `},"partitions":{` + one +
			`}}`, "it names partitions that the topic should not have"},
		"partitions of null": {
			`{"metadata":{"partitions":1},"partitions":null}`,
			"null where an object should be",
		},
		"a partition of null": {
			`{"metadata":{"partitions":1},"partitions":{"` + name + `-partition-0":null}}`,
			"null where an object should be",
		},
		"unexpected partitions": {
			`{"metadata":{"partitions":0},"partitions":{}}`,
			"0 partitions where 1 were known",
		},
		"a huge number of partitions without a loop over it": {
			`{"metadata":{"partitions":2147483647},"partitions":{}}`,
			"2147483647 of 2147483647 partitions are missing (0, 1, 2, 3, 4, ...): a broker did not answer, or they were " +
				"deleted (pulsar-admin topics create-missed-partitions)",
		},
		"an incomplete answer": {`{"metadata":{"partitions":1},"partitions":{` + one, "unexpected EOF"},
		"two answers": {
			`{"metadata":{"partitions":1},"partitions":{` + one + `}}{}`,
			"more than one JSON value",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			answer, err := decodePartitionedStats(strings.NewReader(tt.body), "persistent://public/default/dp", 1,
				backlog.Request{Detail: backlog.Slim})
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				require.Zero(t, answer)
				return
			}
			require.NoError(t, err)
			require.Equal(t,
				[]backlog.PartitionSample{{
					Index: 0, PublishedMessages: 4,
					Subscriptions: []backlog.SubscriptionSample{},
				}}, answer.Partitions)
		})
	}
}
