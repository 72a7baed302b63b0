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
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// typesAreKnown from what the broker reports, and what consumers hold where the broker counts it.
func typesAreKnown(kind pulsar.SubscriptionType, want backlog.SubscriptionType, consumers int) signalsCase {
	return func(t *testing.T, g *ground) {
		const partitions, queue, published = 2, 100, 1000
		topic := g.topic(t, "type-"+string(want), partitions)
		p := g.producer(t, topic, 1)
		p.sendKeyed(published, 100)
		w := g.watchTopics(t, topic)
		r := w.await("a full answer", func(r backlog.Reading) bool { return r.Consumers.Known() })
		require.Equal(t, backlog.NoType, r.Type)
		requireSignal(t, "consumers before there are any", 0, r.Consumers, 0)
		for i := range consumers {
			g.consumer(t, pulsar.ConsumerOptions{
				Topic: topic, Type: kind, ReceiverQueueSize: queue, Properties: instance("public/default/f", i),
			})
		}
		r = w.await("all consumers", func(r backlog.Reading) bool { return is(r.Consumers, float64(consumers)) })
		require.Equal(t, want, r.Type)
		requireSignal(t, "total", published, r.Total, 0)
		requireSignal(t, "ready", published, r.Ready, 0)
		switch want {
		case backlog.Exclusive, backlog.Failover: // these are with consumers too, but Pulsar does not say how many
			require.False(t, r.Unacked.Known(), say(r.Unacked))
			require.False(t, r.Undispatched.Known(), say(r.Undispatched))
		case backlog.Shared, backlog.KeyShared:
			held := float64(consumers * partitions * queue)
			if want == backlog.KeyShared { // keys are spread over consumers by chance: some may have less than they take
				unacked, err := r.Unacked.Value()
				require.NoError(t, err)
				require.LessOrEqual(t, unacked, held)
				held = unacked
			} else {
				r = w.await("all queues to be full", func(r backlog.Reading) bool { return is(r.Unacked, held) })
			}
			require.Positive(t, held)
			requireSignal(t, "undispatched", published-held, r.Undispatched, 0)
		default:
			require.FailNow(t, "no such type")
		}
	}
}

// instancesAreCountedOnce however many topics and partitions each consumes.
func instancesAreCountedOnce(t *testing.T, g *ground) {
	topics := []string{g.topic(t, "instances-a", 0), g.topic(t, "instances-b", 3)}
	w := g.watchTopics(t, topics...)
	g.replicas(t, 3, replica.Instance{Name: "counted", Topics: topics})
	r := w.await("all consumers", func(r backlog.Reading) bool { return is(r.Consumers, 3) })
	requireSignal(t, "consumers", 3, r.Consumers, 0)
	steady := w.await("a window with the same consumers", func(r backlog.Reading) bool { return r.SteadyConsumers })
	require.False(t, steady.At.Before(r.At))
}

// failedMessagesAreRedelivered and count as finished each time: Pulsar does not tell an acknowledgement from a refusal.
func failedMessagesAreRedelivered(t *testing.T, g *ground) {
	const arriving, every = 100, 4
	topic := g.topic(t, "failing", 0)
	w := g.watchTopics(t, topic)
	g.replicas(t, 2, replica.Instance{Name: "failing", Topics: []string{topic}, FailEvery: every, RedeliverAfter: time.Second})
	stop := g.keepUp(t, topic, arriving, load.BatchingOff)
	// Each call fails with probability 1/4 and comes again, so that 100 arriving make 133 calls each second.
	const calls = arriving * every / (every - 1.0)
	begun := time.Now()
	r := w.await("a window with redeliveries", func(r backlog.Reading) bool {
		return covered(begun.Add(3 * time.Second))(r) // 1 s until the first come again, and 1 s until those do
	})
	requireSignal(t, "publish rate", arriving, r.PublishRate, ratesWithin)
	requireSignal(t, "process rate with redeliveries", calls, r.ProcessRate, 2*ratesWithin)
	published := stop()
	r = w.await("all to be done", func(r backlog.Reading) bool { return is(r.Total, 0) })
	requireSignal(t, fmt.Sprintf("total after %d messages", published), 0, r.Total, 0)
}
