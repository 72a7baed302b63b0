// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// covered reports whether all rates were measured after since.
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
	arriving := g.feed(t, topic, perSecond)
	r := w.await("a window under load", covered(begun))
	arriving.requirePublishRate(t, w, r)

	require.NoError(t, g.Unload(t.Context(), partitionName(topic, 2)))
	unloaded := time.Now()
	r = w.await("a window after the unload", covered(unloaded))
	arriving.requirePublishRate(t, w, r)
	published := arriving.stop()
	// The producer sends messages again that were in flight when the partition was unloaded: some are stored twice.
	stored := g.stored(t, partitionNames(topic, 4)...)
	require.GreaterOrEqual(t, stored, 2000+published)
	requireSignal(t, "total", float64(stored), w.fresh().Total, 0.02)

	var last time.Time
	for _, l := range w.all() {
		if errors.Is(l.err, backlog.ErrNoData) {
			continue // before the first response
		}
		require.NoError(t, l.err)
		total, err := l.reading.Total.Value()
		require.NoError(t, err)
		// Messages on their way to storage make batches look larger, never smaller.
		confirmed, _ := arriving.at(l.reading.At)
		require.GreaterOrEqual(t, total+rounding, float64(2000+confirmed), "without a consumer all messages are there")
		if at := l.reading.At; at.After(unloaded) && at.After(last) && !covered(unloaded)(l.reading) {
			last = at
			rate, err := l.reading.PublishRate.Value()
			require.NoError(t, err)
			_, sent := arriving.within(w, l.reading)
			t.Logf("SIGNAL %s: publish rate around the unload: sent %.6g, read %.6g", t.Name(), sent, rate)
			// The reloaded partition has a window of its own, which may be shorter.
			require.Less(t, rate, 2*max(perSecond, sent), "counters that began anew were taken for messages")
		}
	}
}

// stored counts the messages of topics by reading them. Each topic has messages, so the first is read without asking:
// of a topic that has just been loaded, Pulsar may say that it has none (apache/pulsar#1517).
func (g *ground) stored(t *testing.T, topics ...string) (messages int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cluster.WaitLimit)
	defer cancel()
	for _, topic := range topics {
		reader, err := g.client.CreateReader(pulsar.ReaderOptions{Topic: topic, StartMessageID: pulsar.EarliestMessageID()})
		require.NoError(t, err)
		for more := true; more; more = reader.HasNext() {
			_, err := reader.Next(ctx)
			require.NoError(t, err, topic)
			messages++
		}
		reader.Close()
	}
	return messages
}

func deletedPartitionsAreNoSmallerBacklog(t *testing.T, g *ground) {
	topic := g.topic(t, "torn", 4)
	for _, name := range partitionNames(topic, 4) {
		p := g.producer(t, name, 1)
		p.send(100)
		p.producer.Close() // it would recreate the partition
	}
	w := g.watchTopics(t, topic)
	requireSignal(t, "total", 400, w.fresh().Total, 0)
	deletePartition := func(index int) {
		path := "/admin/v2/persistent/public/default/" + partitionName("torn", index)
		g.demand(t, http.MethodDelete, path+"?force=true", "")
	}
	deletePartition(2)
	deleted := time.Now()
	l := w.until("an answer without the partition", deleted, func(l look) bool {
		return l.err == nil && errors.Is(l.reading.Trouble, backlog.ErrPartial) && l.reading.Coverage.Err() != nil
	})
	require.ErrorContains(t, l.reading.Coverage.Err(), "1 of 4 partitions are missing (2)")
	_, err := l.reading.Total.Value()
	require.ErrorIs(t, err, backlog.ErrPartial)
	total, err := l.reading.Total.LowerBound()
	require.NoError(t, err)
	require.InDelta(t, 300, total, rounding)
	for _, l := range w.all() {
		if total, err := l.reading.Total.Value(); err == nil && l.err == nil {
			require.InDelta(t, 400, total, rounding, "a part is no total")
		}
	}

	fetch := func() (backlog.TopicSample, error) {
		return g.source.Fetch(t.Context(), backlog.Topic{Cluster: g.cluster, Name: topic},
			backlog.Request{Detail: backlog.Slim})
	}
	for gone, index := range []int{3, 1} {
		deletePartition(index)
		sample, err := fetch()
		require.NoError(t, err)
		require.ErrorIs(t, sample.Incomplete, backlog.ErrPartial)
		require.Len(t, sample.Partitions, 2-gone, "partition %d and others are gone", index)
	}
	deletePartition(0)
	_, err = fetch()
	require.ErrorIs(t, err, backlog.ErrPartial, "all are gone")
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

// addedPartitionsAreUnread until the client finds them, which takes it up to a minute by default. Here the test
// connects it again.
func addedPartitionsAreUnread(t *testing.T, g *ground) {
	topic := g.topic(t, "grown", 2)
	options := pulsar.ConsumerOptions{
		Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: 100, Properties: instance("public/default/f", 0),
		AutoDiscoveryPeriod: time.Hour,
	}
	c := g.consumer(t, options)
	for _, name := range partitionNames(topic, 2) {
		g.producer(t, name, 1).send(100)
	}
	w := g.watchTopics(t, topic)
	r := w.await("all to be held", func(r backlog.Reading) bool { return is(r.Unacked, 200) })
	requireSignal(t, "unread partitions", 0, r.UnreadPartitions, 0)
	requireSignal(t, "unread messages", 0, r.UnreadMessages, 0)

	g.demand(t, http.MethodPost, "/admin/v2/persistent/public/default/grown/partitions", "4")
	for _, name := range partitionNames(topic, 4)[2:] {
		g.producer(t, name, 1).send(50)
	}
	r = w.fresh()
	requireSignal(t, "total with added partitions", 300, r.Total, 0)
	require.Equal(t, 4, r.Partitions)
	r = w.await("them to be unread", func(r backlog.Reading) bool { return is(r.UnreadPartitions, 2) })
	requireSignal(t, "unread messages", 100, r.UnreadMessages, 0)
	requireSignal(t, "undispatched", 100, r.Undispatched, 0)
	requireSignal(t, "consumers", 1, r.Consumers, 0)
	c.consumer.Close()
	g.consumer(t, options)
	r = w.await("the client to find them", func(r backlog.Reading) bool { return is(r.Unacked, 300) })
	requireSignal(t, "unread partitions", 0, r.UnreadPartitions, 0)
	requireSignal(t, "unread messages", 0, r.UnreadMessages, 0)
}

// skewIsShownByPartition: one partition gets most of the load.
func skewIsShownByPartition(t *testing.T, g *ground) {
	topic := g.topic(t, "skewed", 3)
	w := g.watchTopics(t, topic)
	work := g.replicas(t, 1, replica.Instance{Name: "skewed", Topics: []string{topic}, ReceiverQueueSize: 50})
	begun := time.Now()
	feeds := []*feed{ // none for partition 1
		g.feed(t, partitionName(topic, 0), 180), nil, g.feed(t, partitionName(topic, 2), 20),
	}
	var r backlog.Reading
	var partitions []backlog.PartitionReading
	eventually(t, "a window in which the replica keeps up", func() bool {
		now := time.Now()
		var err, failed error
		r, err = g.store.Read(w.subscription, now)
		partitions, failed = g.store.Partitions(w.subscription, now)
		if after, lost := g.store.Read(w.subscription, now); errors.Join(err, failed, lost) != nil || !after.At.Equal(r.At) {
			return false // the partitions may be of another response
		}
		if !slices.ContainsFunc(w.all(), func(l look) bool { return l.reading.At.Equal(r.At) }) {
			return false // its end is not known yet
		}
		published, err := r.PublishRate.Value()
		return err == nil && covered(begun)(r) && near(published, backlog.Known(work.rate(r)), 0.05) &&
			near(published, r.ProcessRate, ratesWithin)
	})
	require.Len(t, partitions, 3)
	for i, f := range feeds {
		require.Equal(t, i, partitions[i].Index)
		if f == nil {
			requireSignal(t, fmt.Sprint("publish rate of partition ", i), 0, partitions[i].PublishRate, 0)
			requireSignal(t, fmt.Sprint("process rate of partition ", i), 0, partitions[i].ProcessRate, 0)
		} else {
			f.requirePublishRateOf(t, w, r, partitions[i].PublishRate, 1)
		}
		requireSignal(t, fmt.Sprint("consumers of partition ", i), 1, partitions[i].Consumers, 0)
	}
	shares := make([]float64, len(partitions))
	for i, p := range partitions {
		rate, err := p.ProcessRate.Value()
		require.NoError(t, err)
		shares[i] = rate
	}
	require.Greater(t, shares[0], 2*shares[2], "180/s and 20/s are published")
}
