// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestSampleIsGoodWithoutEntryCounters(t *testing.T) {
	tests := map[string]http.HandlerFunc{
		"internal stats are forbidden":       replays(t, "4.0.8-401-role-without-permission-stats.txt"),
		"internal stats lack the counter":    answers(`{"ledgers":[]}`),
		"internal stats have a negative one": answers(`{"entriesAddedCounter":-1}`),
		"internal stats do not exist":        says(http.StatusNotFound, "gone"),
		"the broker fails on internal stats": sends(http.StatusInternalServerError, "text/plain",
			"java.lang.NullPointerException\n\tat ..."),
		"internal stats are not JSON":               answers(`[]`),
		"another server answers for internal stats": sends(http.StatusOK, "text/html", "<html>"),
	}
	for name, internal := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			broker.on("orders/partitions", answers(notPartitioned))
			broker.on("orders/stats", answers(`{"msgInCounter":7,"subscriptions":{}}`))
			broker.on("orders/internalStats", internal)
			sample, err := newSource(t, Config{}, broker).Fetch(t.Context(), broker.topic("orders"),
				backlog.Request{Detail: backlog.Full})
			require.NoError(t, err)
			require.Equal(t, int64(7), sample.Partitions[0].PublishedMessages)
			require.Nil(t, sample.Partitions[0].AddedEntries)
			require.Equal(t, backlog.Consumers, sample.Detail, "unavailable counters are missing")
		})
	}
}

func TestEntryCountersAreAddedToASampleLater(t *testing.T) {
	broker := newFakeBroker(t)
	broker.on("parts/partitions", answers(`{"partitions":4}`))
	broker.on("parts/partitioned-stats", answers(partitioned("parts", 4, 0, 1, 2, 3)))
	broker.on("parts/partitioned-internalStats", answers(string(fixture(t, "4.0.8-partitioned-internalStats.json"))))
	source := newSource(t, Config{}, broker)
	sample, err := source.Fetch(t.Context(), broker.topic("parts"), backlog.Request{Detail: backlog.Consumers})
	require.NoError(t, err)
	require.Equal(t, backlog.Consumers, sample.Detail)
	require.Nil(t, sample.Partitions[0].AddedEntries)
	require.NotContains(t, broker.requested(), "parts/partitioned-internalStats")
	sample = source.AddEntries(t.Context(), broker.topic("parts"), sample)
	require.Equal(t, backlog.Full, sample.Detail)
	for i, entries := range []int64{3, 3, 3, 4} {
		require.Equal(t, entries, *sample.Partitions[i].AddedEntries)
	}
	require.Equal(t, []string{"parts/partitions", "parts/partitioned-stats", "parts/partitioned-internalStats"},
		broker.requested())
}

func TestEntryCountersOfPartitions(t *testing.T) {
	broker := newFakeBroker(t)
	broker.on("orders/partitions", answers(`{"partitions":3}`))
	broker.on("orders/partitioned-stats", answers(partitioned("orders", 3, 0, 1, 2)))
	broker.on("orders/partitioned-internalStats", answers(`{"metadata":{"partitions":3},"partitions":{
		"persistent://public/default/orders-partition-2":{"entriesAddedCounter":22},
		"persistent://public/default/orders-partition-0":{"entriesAddedCounter":20}}}`))
	sample, err := newSource(t, Config{}, broker).Fetch(t.Context(), broker.topic("orders"),
		backlog.Request{Detail: backlog.Full})
	require.NoError(t, err)
	require.Equal(t, int64(20), *sample.Partitions[0].AddedEntries)
	require.Nil(t, sample.Partitions[1].AddedEntries, "a partition that internal stats leave out is unknown")
	require.Equal(t, int64(22), *sample.Partitions[2].AddedEntries)
}

// older is a topic that was loaded again with a backlog, of which some entries were added since.
func older(broker *fakeBroker, entries, added int) {
	broker.on("orders/partitions", answers(notPartitioned))
	broker.on("orders/stats", answers(fmt.Sprintf(`{"msgInCounter":0,"subscriptions":{"public/default/resize":{"type":"Shared",`+
		`"msgBacklog":%d,"msgOutCounter":0,"msgDelayed":0,"unackedMessages":0}}}`, entries)))
	broker.on("orders/internalStats", answers(fmt.Sprintf(`{"entriesAddedCounter":%d}`, added)))
}

// position answers with an entry of this number of messages, as a broker does; 0 for one that is no batch.
func position(messages int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		if messages > 0 {
			w.Header().Set("X-Pulsar-Num-Batch-Message", strconv.Itoa(messages))
		}
		_, _ = w.Write(make([]byte, 100_000))
	}
}

func TestABacklogFromBeforeTheCountersIsPeeked(t *testing.T) {
	const path = "orders/subscription/public/default/resize/position/"
	tests := map[string]struct {
		entries, added   int
		positions        map[string]http.HandlerFunc
		peeked, messages int64
	}{
		"entries spread over the backlog": {
			entries: 21, positions: map[string]http.HandlerFunc{
				"1": position(50), "6": position(50), "11": position(40), "16": position(60), "21": position(50),
			}, peeked: 5, messages: 250,
		},
		"only those from before the counters": {
			entries: 30, added: 28, positions: map[string]http.HandlerFunc{"1": position(7), "2": position(0)},
			peeked: 2, messages: 8,
		},
		"none where the counters have all": {entries: 20, added: 20},
		"none without a backlog":           {entries: 0, added: 0},
		"the entries before a failure": {
			entries: 5, positions: map[string]http.HandlerFunc{"1": position(9)}, peeked: 1, messages: 9,
		},
		"none where it is forbidden": {
			entries: 5, positions: map[string]http.HandlerFunc{"1": says(http.StatusForbidden, "no")},
		},
		"none where the storage does not answer": {
			entries: 5, positions: map[string]http.HandlerFunc{"1": says(http.StatusInternalServerError, "no")},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			older(broker, tt.entries, tt.added)
			for at, answer := range tt.positions {
				broker.on(path+at, answer)
			}
			source := newSource(t, Config{}, broker)
			sample, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Full})
			require.NoError(t, err)
			require.Equal(t, tt.peeked, sample.PeekedEntries)
			require.Equal(t, tt.messages, sample.PeekedMessages)
			require.True(t, sample.Detail.Has(backlog.Entries))
			requireIdle(t, source.client.chain)
		})
	}
}

func TestAPositionIsThatOfThePartition(t *testing.T) {
	cluster := backlog.Cluster{AdminURL: "http://b:8080"}
	a, err := topicAddress(backlog.Topic{Cluster: cluster, Name: "persistent://a/b/c d"})
	require.NoError(t, err)
	require.Equal(t, "http://b:8080/admin/v2/persistent/a/b/c+d-partition-3/subscription/t%2Fn%2Fmy+fn/position/7",
		a.position(3, "t/n/my fn", 7).resource(callPosition, ""))
}
