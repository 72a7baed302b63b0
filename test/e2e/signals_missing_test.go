// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
)

func missingTopicsAndSubscriptionsAreToldApart(partitions int) signalsCase {
	return func(t *testing.T, g *ground) {
		topic := broker.TopicName(fmt.Sprint("missing-", partitions))
		w := g.watchTopics(t, topic)
		w.awaitError(backlog.ErrTopicNotFound)

		require.NoError(t, g.CreateTopic(t.Context(), topic, partitions))
		w.awaitError(backlog.ErrSubscriptionNotFound)

		require.NoError(t, g.CreateSubscription(t.Context(), topic, "s", broker.Earliest))
		p := g.producer(t, partitionNames(topic, partitions)[0], 1)
		p.send(7)
		p.producer.Close() // it would recreate the topic
		r := w.fresh()
		requireSignal(t, "total", 7, r.Total, 0)
		require.Equal(t, backlog.NoType, r.Type, "nobody has consumed yet")

		require.NoError(t, g.DeleteSubscription(t.Context(), topic, "s"))
		w.awaitError(backlog.ErrSubscriptionNotFound)
		require.NoError(t, g.DeleteTopic(t.Context(), topic))
		w.awaitError(backlog.ErrTopicNotFound)
	}
}

func aRecreatedTopicStartsAnew(t *testing.T, g *ground) {
	topic := g.topic(t, "recreated", 0)
	p := g.producer(t, topic, 1)
	p.send(1000)
	p.producer.Close()
	w := g.watchTopics(t, topic)
	requireSignal(t, "total", 1000, w.fresh().Total, 0)
	require.NoError(t, g.DeleteTopic(t.Context(), topic))
	require.NoError(t, g.CreateTopic(t.Context(), topic, 4), "as another kind of topic, before it was missed")
	require.NoError(t, g.CreateSubscription(t.Context(), topic, "s", broker.Earliest))
	g.producer(t, partitionName(topic, 3), 1).send(10)
	since := time.Now()
	r := w.until("the new topic", since, func(l look) bool { return l.err == nil && l.reading.At.After(since) }).reading
	requireSignal(t, "total", 10, r.Total, 0)
}

func ofNonPersistentTopicsAreUnknown(t *testing.T, g *ground) {
	w := g.watchTopics(t, "non-persistent://public/default/fleeting")
	require.ErrorContains(t, w.awaitError(backlog.ErrUnsupported), "non-persistent://public/default/fleeting")
}

func topicsThatAreUnknownLeaveTheOthers(t *testing.T, g *ground) {
	kept, gone := g.topic(t, "part-kept", 0), g.topic(t, "part-gone", 0)
	g.producer(t, kept, 1).send(30)
	p := g.producer(t, gone, 1)
	p.send(12)
	p.producer.Close() // it would recreate the topic
	w := g.watchTopics(t, kept, gone, "non-persistent://public/default/part-fleeting")
	r := w.fresh()
	requireSignal(t, "total", 42, r.Total, 0)
	require.Equal(t, backlog.Coverage{Topics: 2, Known: 2}, r.Coverage, "what is not persistent does not count")

	require.NoError(t, g.DeleteTopic(t.Context(), gone))
	r = w.await("a reading of the other", func(r backlog.Reading) bool { return !r.Coverage.Complete() })
	require.True(t, r.Coverage.Lacks(backlog.ErrTopicNotFound))
	require.ErrorContains(t, r.Coverage.Err(), "1 of 2 topics are known; missing: "+gone)
	total, err := r.Total.LowerBound()
	require.NoError(t, err)
	require.InDelta(t, 30, total, rounding)
	_, err = r.Total.Value()
	require.ErrorIs(t, err, backlog.ErrPartial)
}
