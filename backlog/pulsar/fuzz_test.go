// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// addFixtures seeds with recorded answers: all of them for most decoders, since a valid answer for one is an unexpected
// invalid one for another.
func addFixtures(f *testing.F, pattern string) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(f, err)
		var seed bytes.Buffer // small seeds are tried more often
		require.NoError(f, json.Compact(&seed, content))
		f.Add(seed.Bytes())
	}
}

const everything = backlog.Full | backlog.Precise | backlog.Age | backlog.Bytes

// requireSound checks the invariants of each decoded sample.
func requireSound(t *testing.T, answer backlog.TopicSample) {
	t.Helper()
	require.True(t, answer.Detail.Has(backlog.Full|backlog.Precise))
	indices := map[int]bool{}
	for _, p := range answer.Partitions {
		require.False(t, indices[p.Index], "partition %d occurs twice", p.Index)
		indices[p.Index] = true
		require.GreaterOrEqual(t, p.PublishedMessages, int64(0))
		names := map[string]bool{}
		for _, s := range p.Subscriptions {
			require.False(t, names[s.Name], "subscription %s occurs twice", s.Name)
			names[s.Name] = true
			require.NotEmpty(t, s.Type)
			for _, number := range []int64{
				s.BacklogEntries, s.DelayedMessages, s.UnackedMessages, s.DeliveredMessages, s.InReplayEntries, s.ThrottledEvents,
				s.DrainingHashes, s.BacklogBytes,
			} {
				require.GreaterOrEqual(t, number, int64(0))
			}
			require.True(t, s.EarliestPublishTime.IsZero() || s.EarliestPublishTime.After(time.UnixMilli(0)))
			for _, consumer := range s.Consumers {
				require.GreaterOrEqual(t, consumer.MeanBatch, int64(0))
				require.GreaterOrEqual(t, consumer.UnackedMessages, int64(0))
				require.True(t, consumer.Component == "" || strings.Count(consumer.Component, "/") == 2)
			}
		}
	}
}

func FuzzDecodeStats(f *testing.F) {
	addFixtures(f, "*.json")
	f.Fuzz(func(t *testing.T, content []byte) {
		answer, err := decodeStats(bytes.NewReader(content), backlog.Request{Detail: everything})
		if err != nil {
			require.Zero(t, answer)
			return
		}
		require.Len(t, answer.Partitions, 1)
		require.Equal(t, backlog.NotPartitioned, answer.Partitions[0].Index)
		requireSound(t, answer)
	})
}

func FuzzDecodePartitionedStats(f *testing.F) {
	addFixtures(f, "*.json")
	f.Add([]byte(`{"partitions":{"persistent://public/default/dp-partition-0":{}},"metadata":{"partitions":1}}`))
	f.Add([]byte(partitioned("dp", 2, 0, 1)))
	f.Fuzz(func(t *testing.T, content []byte) {
		answer, err := decodePartitionedStats(bytes.NewReader(content), "persistent://public/default/dp", 2,
			backlog.Request{Detail: everything})
		if err != nil {
			require.Zero(t, answer)
			return
		}
		require.GreaterOrEqual(t, len(answer.Partitions), 2)
		for i, p := range answer.Partitions {
			require.Equal(t, i, p.Index)
		}
		requireSound(t, answer)
	})
}

func FuzzDecodePartitions(f *testing.F) {
	f.Add([]byte(notPartitioned))
	f.Add([]byte(`{"partitions":4,"deleted":false,"properties":null}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		count, err := decodePartitions(bytes.NewReader(content))
		require.GreaterOrEqual(t, count, 0)
		require.False(t, err != nil && count != 0)
	})
}

func FuzzDecodeAddedEntries(f *testing.F) {
	addFixtures(f, "*.json")
	f.Add([]byte(`{"metadata":{"partitions":1},"partitions":{"persistent://public/default/dp-partition-0":{"entriesAddedCounter":20}}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		whole, err := decodeAddedEntries(bytes.NewReader(content))
		require.False(t, err != nil && whole != nil)
		parts, err := decodePartitionedAddedEntries(bytes.NewReader(content), "persistent://public/default/dp")
		require.False(t, err != nil && parts != nil)
		for _, entries := range []map[int]int64{whole, parts} {
			for index, added := range entries {
				require.GreaterOrEqual(t, index, backlog.NotPartitioned)
				require.GreaterOrEqual(t, added, int64(0))
			}
		}
	})
}

func FuzzDecodeTopics(f *testing.F) {
	f.Add([]byte(`["persistent://public/default/a","persistent://public/default/b-partition-0","persistent://public/default/__change_events"]`))
	addFixtures(f, "*.json")
	f.Fuzz(func(t *testing.T, content []byte) {
		// Names before an error count too.
		_ = decodeTopics(bytes.NewReader(content), "public/default", func(name string) {
			require.True(t, strings.HasPrefix(name, "persistent://public/default/"))
			require.False(t, backlog.SystemTopic(name))
		})
	})
}

func FuzzDecodeReason(f *testing.F) {
	f.Add([]byte(`{"reason":"Topic persistent://public/default/dun not found"}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		reason, ok := decodeReason(content)
		require.True(t, ok || reason == "")
		require.LessOrEqual(t, len(backlog.Quote(reason)), backlog.MostQuoted+len("..."))
		require.NotContains(t, backlog.Quote(reason), "\n")
	})
}

func FuzzTopicPath(f *testing.F) {
	f.Add("persistent://public/default/orders")
	f.Add("persistent://a/b/..")
	f.Add("persistent://a/b/c d+e%2F")
	f.Fuzz(func(t *testing.T, name string) {
		path, err := topicPath(name)
		if err != nil {
			require.Empty(t, path)
			return
		}
		require.Equal(t, 6, strings.Count(path, "/"), "a name is never more than its own resource")
		require.NotContains(t, path, "?")
		require.NotContains(t, path, "#")
		require.False(t, strings.HasSuffix(path, "/.") || strings.HasSuffix(path, "/.."))
	})
}

func FuzzDecodeScalableStats(f *testing.F) {
	addFixtures(f, "*.json")
	f.Add([]byte(answersWithBacklog))
	f.Fuzz(func(t *testing.T, content []byte) {
		stats, err := decodeScalableStats(bytes.NewReader(content))
		if err != nil {
			return
		}
		require.NotEmpty(t, stats.segments)
		require.LessOrEqual(t, stats.owned, len(stats.segments))
		for _, sample := range stats.samples(backlog.Request{Detail: everything}) {
			require.GreaterOrEqual(t, sample.BacklogEntries, int64(0))
			require.GreaterOrEqual(t, sample.MoreConsumers, 0)
		}
	})
}
