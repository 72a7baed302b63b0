// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
)

// keepUp publishes to the topic until the returned function is called, and at the latest until the test ends.
func (g *ground) keepUp(t *testing.T, topic string, perSecond float64, batching load.Batching) (stop func() (published int64)) {
	t.Helper()
	p, err := load.New(load.Config{ServiceURL: g.ServiceURL(), Topic: topic, Batching: batching})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error { return p.Run(ctx, load.Constant(perSecond)) })
	stop = func() int64 {
		cancel()
		require.NoError(t, group.Wait())
		return p.Published()
	}
	t.Cleanup(func() {
		stop()
		p.Close()
	})
	return stop
}

// covered says that all rates were measured after since.
func covered(since time.Time) func(backlog.Reading) bool {
	return func(r backlog.Reading) bool {
		return r.PublishRate.Known() && r.Window > 0 && r.At.Add(-r.Window).After(since)
	}
}

func anUnloadedPartitionChangesNothing(t *testing.T, g *ground) {
	const perSecond = 200
	topic := g.topic(t, "unloaded", 4)
	for _, name := range partitionNames(topic, 4) {
		g.producer(t, name, 1).send(500)
	}
	w := g.watchTopics(t, topic)
	requireSignal(t, "total", 2000, w.fresh().Total, 0)
	begun := time.Now()
	stop := g.keepUp(t, topic, perSecond, load.BatchingOff)
	r := w.await("a window under load", covered(begun))
	requireSignal(t, "publish rate", perSecond, r.PublishRate, 0.1)

	require.NoError(t, g.Unload(t.Context(), partitionName(topic, 2)))
	unloaded := time.Now()
	r = w.await("a window after the unload", covered(unloaded))
	requireSignal(t, "publish rate", perSecond, r.PublishRate, 0.1)
	published := stop()
	// The producer sends again what was on its way when the partition went, so that some messages are there twice.
	requireSignal(t, "total", 2000+float64(published), w.fresh().Total, 0.02)

	before := 0.0
	for _, l := range w.all() {
		if errors.Is(l.err, backlog.ErrNoData) {
			continue // before the first answer
		}
		require.NoError(t, l.err)
		total, err := l.reading.Total.Value()
		require.NoError(t, err)
		require.GreaterOrEqual(t, total, before, "nobody consumes, so that the backlog cannot shrink")
		before = total
		if l.reading.At.After(unloaded) && l.reading.At.Before(unloaded.Add(2*groundWindow)) && !covered(unloaded)(l.reading) {
			requireSignal(t, "publish rate around the unload", perSecond, l.reading.PublishRate, 0.3)
		}
	}
}

func deletedPartitionsAreNoSmallerBacklog(t *testing.T, g *ground) {
	topic := g.topic(t, "torn", 4)
	for _, name := range partitionNames(topic, 4) {
		p := g.producer(t, name, 1)
		p.send(100)
		p.producer.Close() // it would make the partition again
	}
	w := g.watchTopics(t, topic)
	requireSignal(t, "total", 400, w.fresh().Total, 0)
	deletePartition := func(index int) {
		path := "/admin/v2/persistent/public/default/" + partitionName("torn", index)
		g.demand(t, http.MethodDelete, path+"?force=true", "")
	}
	deletePartition(2)
	deleted := time.Now()
	l := w.until("an answer without the partition", deleted, func(l look) bool { return l.err != nil || l.reading.Trouble != nil })
	l = w.until("another", l.at, func(look) bool { return true })
	require.NoError(t, l.err, "what was known stays in force until it is stale")
	require.ErrorIs(t, l.reading.Trouble, backlog.ErrPartial)
	require.ErrorContains(t, l.reading.Trouble, "1 of 4 partitions are missing (2)")
	requireSignal(t, "total", 400, l.reading.Total, 0)
	require.True(t, l.reading.At.Before(deleted), "the reading is older than the trouble, and says so")

	for _, index := range []int{0, 1, 3} { // by now the poller asks seldom
		deletePartition(index)
		_, err := g.source.Fetch(t.Context(), backlog.Topic{Cluster: g.cluster, Name: topic}, backlog.Slim)
		require.ErrorIs(t, err, backlog.ErrPartial, "partition %d and others are gone", index)
	}
}

func anUnloadKeepsTheBacklog(partitions int) signalsCase {
	return func(t *testing.T, g *ground) {
		topic := g.topic(t, fmt.Sprint("reloaded-", partitions), partitions)
		truth := 0.0
		for _, name := range partitionNames(topic, partitions) {
			g.producer(t, name, 50).send(500)
			truth += 500
		}
		w := g.watchTopics(t, topic)
		w.fresh()
		requireSignal(t, "total", truth, w.fresh().Total, 0)
		require.NoError(t, g.Unload(t.Context(), topic))
		since := time.Now()
		for range 3 {
			requireSignal(t, "total after an unload", truth, w.fresh().Total, 0)
		}
		r := w.await("a window after the unload", covered(since))
		requireSignal(t, "publish rate after an unload", 0, r.PublishRate, 0)
		requireSignal(t, "process rate after an unload", 0, r.ProcessRate, 0)
	}
}
