// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// byHand reads a subscription of a topic with chosen details: the Poller reads the age only every 30 s.
type byHand struct {
	t            *testing.T
	g            *ground
	store        *backlog.Store
	subscription backlog.Subscription
}

func (g *ground) byHand(t *testing.T, topic string) byHand {
	t.Helper()
	const longest = 10 * time.Minute // one window for all
	store, err := backlog.NewStore(longest, longest, backlog.Bounds{})
	require.NoError(t, err)
	subscription := backlog.NewSubscription(g.cluster, "s", topic)
	store.Track("test", subscription)
	return byHand{t: t, g: g, store: store, subscription: subscription}
}

func (h byHand) read(detail backlog.Detail) backlog.Reading {
	h.t.Helper()
	topic := backlog.Topic{Cluster: h.g.cluster, Name: h.subscription.Topics[0]}
	sample, err := h.g.source.Fetch(h.t.Context(), topic, backlog.Request{Detail: detail})
	require.NoError(h.t, err)
	require.True(h.t, sample.Detail.Has(detail), "a detail is missing")
	h.store.Record(topic, sample)
	r, err := h.store.Read(h.subscription, time.Now())
	require.NoError(h.t, err)
	return r
}

// oldestAgeIsThatOfTheOldestMessage in any ledger.
func oldestAgeIsThatOfTheOldestMessage(partitions int) signalsCase {
	return func(t *testing.T, g *ground) {
		topic := g.topic(t, fmt.Sprint("age-", partitions), partitions)
		w := g.watchTopics(t, topic)
		requireSignal(t, "oldest age of nothing", 0, w.fresh().OldestAge, 0)
		names := partitionNames(topic, partitions)
		first, last := g.producer(t, names[0], 1), g.producer(t, names[len(names)-1], 1)
		first.send(5)
		r := w.await("a look at the age", func(r backlog.Reading) bool { return atLeast(r.OldestAge, 0.001) })
		polledAge, polledAt := r.OldestAge, r.OldestAt
		last.send(5)
		c := g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared})
		held := c.take(10) // the client mixes messages of several partitions
		slices.SortFunc(held, func(a, b pulsar.Message) int { return a.PublishTime().Compare(b.PublishTime()) })
		older, newer := held[:5], held[5:]
		oldest := older[0].PublishTime()
		const millisecond = 0.002 // publish times are in whole milliseconds
		requireAge := func(signal string, at time.Time, published time.Time, got backlog.Measurement) {
			t.Helper()
			truth := at.Sub(published).Seconds()
			requireSignal(t, signal, truth, got, millisecond/truth)
		}
		requireAge("oldest age by the poller", polledAt, oldest, polledAge)
		h := g.byHand(t, topic)
		r = h.read(backlog.Full | backlog.Age)
		requireAge("oldest age of held messages", r.OldestAt, oldest, r.OldestAge)
		c.ack(older)
		r = h.read(backlog.Full | backlog.Age)
		requireAge("oldest age after the oldest is done", r.OldestAt, newer[0].PublishTime(), r.OldestAge)
		require.NoError(t, g.Unload(t.Context(), topic))
		r = h.read(backlog.Full | backlog.Age)
		requireAge("oldest age after an unload", r.OldestAt, newer[0].PublishTime(), r.OldestAge)
	}
}

// bytesAreThoseOfTheBacklog.
func bytesAreThoseOfTheBacklog(t *testing.T, g *ground) {
	const messages, size = 200, 1000
	topic := g.topic(t, "bytes", 2)
	for _, name := range partitionNames(topic, 2) {
		g.producer(t, name, 1).sendAs(messages, func(int) *pulsar.ProducerMessage {
			return &pulsar.ProducerMessage{Payload: make([]byte, size)}
		})
	}
	unasked := g.watchTopics(t, topic)
	_, err := unasked.fresh().Bytes.Value()
	require.ErrorIs(t, err, backlog.ErrNotRequested)
	subscription := unasked.subscription
	subscription.Bytes = true
	w := g.watch(t, subscription)
	r := w.await("bytes", func(r backlog.Reading) bool { return r.Bytes.Known() })
	// Metadata of a message is about 60 bytes.
	requireSignal(t, "bytes", 2*messages*size, r.Bytes, 0.1)
	c := g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: messages})
	c.ack(c.take(messages))
	r = w.fresh()
	requireSignal(t, "total", messages, r.Total, 0)
	requireSignal(t, "bytes of half", messages*size, r.Bytes, 0.5)
	c.ack(c.take(messages))
	requireSignal(t, "bytes of nothing", 0, w.fresh().Bytes, 0)
}

// countsNearZeroAreExact.
func countsNearZeroAreExact(t *testing.T, g *ground) {
	topic := g.topic(t, "few", 0)
	g.producer(t, topic, 1).send(100)
	c := g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared})
	held := c.take(100)
	w := g.watchTopics(t, topic)
	h := g.byHand(t, topic)
	for left := 100; left > 0; left /= 3 {
		for i, message := range held {
			if i%3 != 0 { // leaves holes
				c.ack([]pulsar.Message{message})
			}
		}
		var rest []pulsar.Message
		for i, message := range held {
			if i%3 == 0 {
				rest = append(rest, message)
			}
		}
		if held = rest; len(held) == 1 {
			c.ack(held)
			held = nil
		}
		requireSignal(t, "total", float64(len(held)), w.fresh().Total, 0)
		requireSignal(t, "total, precise", float64(len(held)), h.read(backlog.Full|backlog.Precise).Total, 0)
	}
}
