// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// totalIsInMessages though Pulsar counts entries.
func totalIsInMessages(partitions, batch int) signalsCase {
	return func(t *testing.T, g *ground) {
		topic := g.topic(t, fmt.Sprintf("total-%d-%d", partitions, batch), partitions)
		w := g.watchTopics(t, topic)
		requireSignal(t, "total", 0, w.fresh().Total, 0)
		published := 0.0
		for _, name := range partitionNames(topic, partitions) {
			g.producer(t, name, batch).send(1000)
			published += 1000
		}
		since := time.Now()
		// The mean batch is learned from a complete response, the second one with a backlog.
		r := w.await("a full answer", func(r backlog.Reading) bool { return atLeast(r.Total, published) })
		requireSignal(t, "total", published, r.Total, 0)
		requireSignal(t, "ready", published, r.Ready, 0)
		low := map[time.Time]bool{}
		for _, l := range w.all() {
			if l.reading.At.After(since) && !atLeast(l.reading.Total, published) {
				low[l.reading.At] = true
			}
		}
		require.LessOrEqual(t, len(low), 1, "answers whose entries were taken for messages")
	}
}

func totalFollowsTheSizeOfBatches(t *testing.T, g *ground) {
	topic := g.topic(t, "batches", 0)
	w := g.watchTopics(t, topic)
	w.fresh()
	c := g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: 2000})
	for _, batch := range []int{50, 5, 1} {
		g.producer(t, topic, batch).send(1000)
		w.fresh()
		c.ack(c.take(1000))
		requireSignal(t, "total", 0, w.fresh().Total, 0)
	}
	// The latest writes determine the size of batches; a sudden growth counts one response later.
	published := 0.0
	for _, batch := range []int{1, 5, 50} {
		g.producer(t, topic, batch).send(1000)
		published += 1000
		w.await("the size of the last batches", func(r backlog.Reading) bool { return is(r.Total, published) })
	}
}

func unackedAndUndispatchedAreToldApart(t *testing.T, g *ground) {
	topic := g.topic(t, "held", 0)
	g.producer(t, topic, 1).send(500)
	w := g.watchTopics(t, topic)
	r := w.fresh()
	requireSignal(t, "unacked", 0, r.Unacked, 0)
	requireSignal(t, "undispatched", 500, r.Undispatched, 0)

	c := g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: 100})
	r = w.await("the queue to be full", func(r backlog.Reading) bool { return is(r.Unacked, 100) })
	requireSignal(t, "total", 500, r.Total, 0)
	requireSignal(t, "ready", 500, r.Ready, 0)
	requireSignal(t, "undispatched", 400, r.Undispatched, 0)
	require.Equal(t, backlog.Shared, r.Type)

	c.ack(c.take(300)) // the client requests more when half of its queue is empty
	r = w.await("the queue to be full again", func(r backlog.Reading) bool { return is(r.Unacked, 100) })
	requireSignal(t, "total", 200, r.Total, 0)
	requireSignal(t, "undispatched", 100, r.Undispatched, 0)

	c.consumer.Close()
	r = w.fresh()
	requireSignal(t, "unacked after a crash", 0, r.Unacked, 0)
	requireSignal(t, "undispatched", 200, r.Undispatched, 0)
	require.Equal(t, backlog.Shared, r.Type)
}

func consumersThatHoldMessagesAreCounted(t *testing.T, g *ground) {
	topic := g.topic(t, "starved", 3)
	g.producer(t, topic, 1).send(50)
	w := g.watchTopics(t, topic)
	first := g.consumer(t, pulsar.ConsumerOptions{
		Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: 1000, Name: "first",
	})
	w.await("all messages to be dispatched", func(r backlog.Reading) bool { return is(r.Unacked, 50) })
	g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: 1000, Name: "second"})
	r := w.await("another consumer", func(r backlog.Reading) bool { return is(r.Consumers, 2) })
	requireSignal(t, "consumers that hold messages", 1, r.Holding, 0)
	requireSignal(t, "undispatched", 0, r.Undispatched, 0)
	first.ack(first.take(50))
	requireSignal(t, "consumers that hold messages", 0, w.fresh().Holding, 0)
}

func blockedWhileTooMuchIsHeld(t *testing.T, g *ground) {
	topic := g.topic(t, "blocked", 0)
	g.policy(t, topic, "maxUnackedMessagesOnSubscription", "50")
	g.producer(t, topic, 1).send(300)
	w := g.watchTopics(t, topic)
	require.False(t, w.fresh().Blocked)
	c := g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: 1000})
	held := c.take(50)
	r := w.await("dispatch to stop", func(r backlog.Reading) bool { return r.Blocked })
	unacked, err := r.Unacked.Value()
	require.NoError(t, err)
	// The broker checks the limit between reads of up to 100 entries (dispatcherMaxReadBatchSize).
	t.Logf("SIGNAL %s: unacked when blocked at 50: read %g", t.Name(), unacked)
	require.GreaterOrEqual(t, unacked, 50.0)
	require.Less(t, unacked, 300.0)
	requireSignal(t, "total", 300, r.Total, 0)
	requireSignal(t, "undispatched", 300-unacked, r.Undispatched, 0)

	c.ack(held)
	for range 25 { // dispatch continues below half of the limit, and may stop again
		c.ack(c.take(10))
	}
	r = w.fresh()
	require.False(t, r.Blocked)
	requireSignal(t, "total", 0, r.Total, 0)
}

func delayedMessagesAreNotReady(t *testing.T, g *ground) {
	topic := g.topic(t, "delayed", 0)
	p := g.producer(t, topic, 1)
	p.send(300)
	p.sendLater(200, time.Hour)
	w := g.watchTopics(t, topic)
	r := w.fresh()
	requireSignal(t, "total", 500, r.Total, 0)
	// The dispatcher learns of a delay when it reads the message for a consumer. Until then the message looks ready.
	require.False(t, r.Delayed.Known(), say(r.Delayed))
	requireSignal(t, "ready before a consumer", 500, r.Ready, 0)

	c := g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: 1000})
	held := c.take(300)
	r = w.await("the dispatcher to have read all", func(r backlog.Reading) bool { return is(r.Delayed, 200) })
	requireSignal(t, "total", 500, r.Total, 0)
	requireSignal(t, "ready", 300, r.Ready, 0)
	requireSignal(t, "unacked", 300, r.Unacked, 0)
	requireSignal(t, "undispatched", 0, r.Undispatched, 0)
	c.ack(held)
	r = w.fresh()
	requireSignal(t, "total", 200, r.Total, 0)
	requireSignal(t, "delayed", 200, r.Delayed, 0)
	requireSignal(t, "ready", 0, r.Ready, 0)

	c.consumer.Close()
	r = w.fresh()
	require.False(t, r.Delayed.Known(), "the broker goes on to say 200, whatever falls due")
	requireSignal(t, "ready without a consumer", 200, r.Ready, 0)
	require.NoError(t, g.Unload(t.Context(), topic))
	r = w.fresh()
	require.False(t, r.Delayed.Known(), say(r.Delayed))
	requireSignal(t, "ready after an unload", 200, r.Ready, 0)
	requireSignal(t, "total after an unload", 200, r.Total, 0)
}

// shortDelay is over soon. No case depends on what is seen before: that messages are delayed is shown with long delays.
const shortDelay = 3 * time.Second

func delaysThatPassMakeMessagesReady(t *testing.T, g *ground) {
	topic := g.topic(t, "due", 0)
	c := g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: 100})
	w := g.watchTopics(t, topic)
	g.producer(t, topic, 1).sendLater(50, shortDelay)
	held := c.take(50)
	r := w.fresh()
	requireSignal(t, "delayed", 0, r.Delayed, 0)
	requireSignal(t, "ready", 50, r.Ready, 0)
	requireSignal(t, "unacked", 50, r.Unacked, 0)
	c.ack(held)
	requireSignal(t, "total", 0, w.fresh().Total, 0)
}

// delaysThatPassWithoutAConsumerMakeMessagesReady, or a workload at zero would never start again.
func delaysThatPassWithoutAConsumerMakeMessagesReady(t *testing.T, g *ground) {
	topic := g.topic(t, "due-later", 0)
	c := g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: 100})
	w := g.watchTopics(t, topic)
	g.producer(t, topic, 1).sendLater(50, shortDelay)
	due := time.Now().Add(shortDelay)
	c.consumer.Close()
	r := w.await("the delays to pass", func(r backlog.Reading) bool { return r.At.After(due) })
	requireSignal(t, "ready", 50, r.Ready, 0)
	requireSignal(t, "undispatched", 50, r.Undispatched, 0)
	c = g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: 100})
	c.ack(c.take(50))
	requireSignal(t, "total", 0, w.fresh().Total, 0)
}
