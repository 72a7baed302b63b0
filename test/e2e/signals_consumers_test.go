// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/distribution"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// typesAreKnown from the broker's statistics, and so are unacknowledged messages where the broker counts them.
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
				Name: fmt.Sprint("consumer-", i),
			})
		}
		r = w.await("all consumers", func(r backlog.Reading) bool { return is(r.Consumers, float64(consumers)) })
		require.Equal(t, want, r.Type)
		requireSignal(t, "total", published, r.Total, 0)
		requireSignal(t, "ready", published, r.Ready, 0)
		require.Equal(t, []string{"public/default/f"}, r.Components)
		require.Equal(t, partitions, r.Partitions)
		switch want {
		case backlog.Exclusive, backlog.Failover: // Pulsar does not count their unacknowledged messages
			require.False(t, r.Unacked.Known(), say(r.Unacked))
			require.False(t, r.Undispatched.Known(), say(r.Undispatched))
		case backlog.Shared, backlog.KeyShared:
			held := float64(consumers * partitions * queue)
			if want == backlog.KeyShared { // keys are assigned by hash: some consumers may have few
				r = w.await("messages to be dispatched", func(r backlog.Reading) bool { return atLeast(r.Unacked, 1) })
				unacked, err := r.Unacked.Value()
				require.NoError(t, err)
				require.LessOrEqual(t, unacked, held)
				held = unacked
			} else {
				r = w.await("all queues to be full", func(r backlog.Reading) bool { return is(r.Unacked, held) })
			}
			requireSignal(t, "undispatched", published-held, r.Undispatched, 0)
		default:
			require.FailNow(t, "no such type")
		}
	}
}

// topicsOfTwoTypesAreTold: on one topic another consumer has another subscription type, so Pulsar rejects the replicas.
func topicsOfTwoTypesAreTold(t *testing.T, g *ground) {
	theirs, ours := g.topic(t, "two-types-a", 0), g.topic(t, "two-types-b", 2)
	w := g.watchTopics(t, theirs, ours)
	for topic, kind := range map[string]pulsar.SubscriptionType{theirs: pulsar.Shared, ours: pulsar.Failover} {
		g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: kind, Properties: instance("public/default/f", 0)})
	}
	r := w.await("both types", func(r backlog.Reading) bool { return r.OtherType != "" })
	require.ElementsMatch(t, []backlog.SubscriptionType{backlog.Shared, backlog.Failover},
		[]backlog.SubscriptionType{r.Type, r.OtherType})
	_, err := g.client.Subscribe(pulsar.ConsumerOptions{
		Topic: theirs, SubscriptionName: w.subscription.Name,
		Type: pulsar.Failover,
	})
	require.Error(t, err, "what is told of: a replica cannot consume there")
}

// instancesAreCountedOnce on any number of topics and partitions.
func instancesAreCountedOnce(t *testing.T, g *ground) {
	topics := []string{g.topic(t, "instances-a", 0), g.topic(t, "instances-b", 3)}
	g.replicas(t, 3, replica.Instance{Name: "counted", Topics: topics})
	w := g.watchTopics(t, topics...) // only now: consumers of an idle subscription are read once a minute
	r := w.await("all consumers", func(r backlog.Reading) bool { return is(r.Consumers, 3) })
	requireSignal(t, "consumers", 3, r.Consumers, 0)
	steady := w.await("a window with the same consumers", func(r backlog.Reading) bool { return r.SteadyConsumers })
	require.False(t, steady.At.Before(r.At))
}

// functionsThatShareASubscriptionAreNamed.
func functionsThatShareASubscriptionAreNamed(t *testing.T, g *ground) {
	topic := g.topic(t, "shared", 0)
	for i, function := range []string{"public/default/g", "public/default/f", "public/default/f"} {
		g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, Properties: instance(function, i)})
	}
	g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared}) // not a function
	w := g.watchTopics(t, topic)
	r := w.await("all consumers", func(r backlog.Reading) bool { return is(r.Consumers, 4) })
	require.Equal(t, []string{"public/default/f", "public/default/g"}, r.Components)
}

// awaitDelivered waits until the broker has counted that many messages as sent. Before, it counts them as
// unacknowledged, so that they would seem processed after a response within a dispatch.
func (g *ground) awaitDelivered(t *testing.T, topic string, messages int64) {
	t.Helper()
	eventually(t, fmt.Sprint(messages, " messages to be sent"), func() bool {
		sample, err := g.source.Fetch(t.Context(), backlog.Topic{Cluster: g.cluster, Name: topic}, backlog.Request{})
		return err == nil && sample.Partitions[0].Subscriptions[0].DeliveredMessages >= messages
	})
}

// aConsumerThatDiesFinishesNothing: its messages return to the subscription. It is read by hand, as no response may be
// of a time within a dispatch.
func aConsumerThatDiesFinishesNothing(t *testing.T, g *ground) {
	topic := g.topic(t, "died", 0)
	g.producer(t, topic, 1).send(200)
	c := g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: 100})
	g.awaitDelivered(t, topic, 100)
	h := g.byHand(t, topic)
	h.read(backlog.Full)
	r := h.read(backlog.Full)
	requireSignal(t, "unacked", 100, r.Unacked, 0)
	requireSignal(t, "process rate", 0, r.ProcessRate, 0)
	requireSignal(t, "in replay", 0, r.InReplay, 0)
	c.consumer.Close()
	g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: 100})
	g.awaitDelivered(t, topic, 200)
	for range 2 {
		r = h.read(backlog.Full)
		requireSignal(t, "process rate with another consumer", 0, r.ProcessRate, 0)
		requireSignal(t, "unacked", 100, r.Unacked, 0)
		requireSignal(t, "total", 200, r.Total, 0)
		requireSignal(t, "redelivered", 100, r.Redelivered, 0)
	}
}

// aConsumerThatSeeksFinishesNothing: it reconnects under its name before the next response, and receives its messages
// again. Skipped messages are not processed either. It is read by hand, as no response may be of a time within a
// dispatch.
func aConsumerThatSeeksFinishesNothing(t *testing.T, g *ground) {
	topic := g.topic(t, "sought", 0)
	g.producer(t, topic, 1).send(500)
	c := g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: 100})
	g.awaitDelivered(t, topic, 100)
	past := time.Now().Add(-time.Hour)
	// Since 4.2 a broker removes skipped messages from consumers, so that they count as processed once.
	most := 0.0
	if g.Version() != distribution.Version {
		most = 100
	}
	for _, change := range []struct {
		what            string
		do              func()
		delivered, left int64
	}{
		{"the consumer seeks back", func() { require.NoError(t, c.consumer.SeekByTime(past)) }, 200, 500},
		{"20 are skipped", func() { g.demand(t, http.MethodPost, subscriptionPath("sought")+"/skip/20", "") }, 200, 480},
		{"all are skipped", func() { g.demand(t, http.MethodPost, subscriptionPath("sought")+"/skip_all", "") }, 200, 0},
		{"an administrator goes back", func() {
			g.demand(t, http.MethodPost, fmt.Sprintf("%s/resetcursor/%d", subscriptionPath("sought"), past.UnixMilli()), "")
		}, 300, 500},
	} {
		h := g.byHand(t, topic) // its window begins here
		h.read(backlog.Full)
		change.do()
		g.awaitDelivered(t, topic, change.delivered)
		for answer := range 2 {
			r := h.read(backlog.Full)
			requireSignal(t, "total after "+change.what, float64(change.left), r.Total, 0)
			rate, err := r.ProcessRate.Value()
			if answer == 0 && err != nil {
				continue // a rate may begin again with this response
			}
			require.NoError(t, err)
			require.LessOrEqual(t, rate*r.Window.Seconds(), most, "nothing was acknowledged when %s", change.what)
		}
	}
}

// subscriptionPath is the admin path of the subscription "s" of a topic of public/default.
func subscriptionPath(topic string) string {
	return "/admin/v2/persistent/public/default/" + topic + "/subscription/s"
}

// consumersThatShareANameAreSeveral on any number of partitions: all pods of a Deployment share its consumer name.
func consumersThatShareANameAreSeveral(t *testing.T, g *ground) {
	topic := g.topic(t, "namesakes", 2)
	g.producer(t, partitionName(topic, 0), 1).send(100)
	for range 3 {
		g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, Name: "worker", ReceiverQueueSize: 10})
	}
	w := g.watchTopics(t, topic)
	r := w.await("all consumers", func(r backlog.Reading) bool { return is(r.Consumers, 3) })
	requireSignal(t, "consumers of one name", 3, r.Consumers, 0)
}

// busyConsumersLeaveMessagesInReplay: the dispatcher reads messages for which no consumer has room.
func busyConsumersLeaveMessagesInReplay(t *testing.T, g *ground) {
	topic := g.topic(t, "replayed", 0)
	g.producer(t, topic, 50).send(1000)
	w := g.watchTopics(t, topic)
	w.fresh()
	c := g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: 100})
	r := w.await("the queue to be full, and the others to be in replay", func(r backlog.Reading) bool {
		return is(r.Unacked, 100) && is(r.InReplay, 900)
	})
	requireSignal(t, "total", 1000, r.Total, 0)
	requireSignal(t, "undispatched", 900, r.Undispatched, 0)
	for range 20 {
		c.ack(c.take(50))
	}
	r = w.fresh()
	requireSignal(t, "in replay", 0, r.InReplay, 0)
	requireSignal(t, "total", 0, r.Total, 0)
}

// drainingWhileKeysWaitForTheirFormerConsumer.
func drainingWhileKeysWaitForTheirFormerConsumer(t *testing.T, g *ground) {
	topic := g.topic(t, "draining", 0)
	g.producer(t, topic, 1).sendKeyed(100, 50)
	first := g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.KeyShared, ReceiverQueueSize: 1000})
	w := g.watchTopics(t, topic)
	r := w.await("all to be held", func(r backlog.Reading) bool { return is(r.Unacked, 100) })
	require.False(t, r.Draining)
	g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.KeyShared, ReceiverQueueSize: 1000})
	w.await("keys to wait", func(r backlog.Reading) bool { return r.Draining })
	first.ack(first.take(100))
	require.False(t, w.fresh().Draining)
}

// throttledWhileARateLimitHoldsDispatchBack.
func throttledWhileARateLimitHoldsDispatchBack(t *testing.T, g *ground) {
	const perSecond = 100
	topic := g.topic(t, "throttled", 0)
	g.producer(t, topic, 1).send(10_000)
	g.policy(t, topic, "subscriptionDispatchRate",
		fmt.Sprintf(`{"dispatchThrottlingRateInMsg":%d,"dispatchThrottlingRateInByte":-1,"ratePeriodInSecond":1}`, perSecond))
	w := g.watchTopics(t, topic)
	require.False(t, w.fresh().Throttled)
	begun := time.Now()
	g.replicas(t, 1, replica.Instance{Name: "throttled", Topics: []string{topic}})
	w.await("a window of throttling", func(r backlog.Reading) bool {
		return covered(begun)(r) && r.Throttled && near(perSecond, r.DeliveryRate, 0.5)
	})
}

// failedMessagesAreRedelivered and count as processed each time: Pulsar does not distinguish negative acknowledgements.
func failedMessagesAreRedelivered(t *testing.T, g *ground) {
	const arriving, every = 100, 4
	topic := g.topic(t, "failing", 0)
	w := g.watchTopics(t, topic)
	work := g.replicas(t, 2,
		replica.Instance{Name: "failing", Topics: []string{topic}, FailEvery: every, RedeliverAfter: time.Second})
	feed := g.feed(t, topic, arriving)
	begun := time.Now()
	r := w.await("a window with redeliveries", func(r backlog.Reading) bool {
		calls := work.rate(r) * every / (every - 1)    // every fourth call fails: 100 arriving make 133 calls each second
		return covered(begun.Add(3*time.Second))(r) && // 1 s until the first come again, and 1 s until those do
			near(calls, r.ProcessRate, ratesWithin) && near(calls, r.DeliveryRate, ratesWithin)
	})
	feed.requirePublishRate(t, w, r)
	published := feed.stop()
	r = w.await("all to be done", func(r backlog.Reading) bool { return is(r.Total, 0) })
	requireSignal(t, fmt.Sprintf("total after %d messages", published), 0, r.Total, 0)
}
