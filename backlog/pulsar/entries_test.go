// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestSampleIsGoodWithoutEntryCounters(t *testing.T) {
	tests := map[string]http.HandlerFunc{
		"internal stats are forbidden":       replays(t, "4.0.8-401-role-without-permission-stats.txt"),
		"internal stats lack the counter":    answers(`{"ledgers":[]}`),
		"internal stats have a negative one": answers(`{"entriesAddedCounter":-1}`),
		"internal stats are not there":       says(http.StatusNotFound, "gone"),
		"the broker fails on internal stats": sends(http.StatusInternalServerError, "text/plain",
			"java.lang.NullPointerException\n\tat ..."),
		"internal stats are something else":    answers(`[]`),
		"something else answers for internals": sends(http.StatusOK, "text/html", "<html>"),
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
			require.Equal(t, backlog.Consumers, sample.Detail, "what could not be had is missing")
		})
	}
}

func TestEntryCountersAsRecorded(t *testing.T) {
	broker := newFakeBroker(t)
	broker.on("parts/partitions", answers(`{"partitions":4}`))
	broker.on("parts/partitioned-stats", answers(partitioned("parts", 4, 0, 1, 2, 3)))
	broker.on("parts/partitioned-internalStats", answers(string(fixture(t, "4.0.8-partitioned-internalStats.json"))))
	sample, err := newSource(t, Config{}, broker).Fetch(t.Context(), broker.topic("parts"),
		backlog.Request{Detail: backlog.Full})
	require.NoError(t, err)
	for i, entries := range []int64{3, 3, 3, 4} {
		require.Equal(t, entries, *sample.Partitions[i].AddedEntries)
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
	require.Equal(t, int64(4), *sample.Partitions[3].AddedEntries)
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
