// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
)

// transactionsAtOnce is the number of open transactions.
const transactionsAtOnce = 4

// transact publishes and commits transactions of that many messages each, with an entry for each message.
func (g *ground) transact(t *testing.T, topic string, transactions, messages int) {
	t.Helper()
	client, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: g.ServiceURL(), Logger: log.DefaultNopLogger(), MetricsRegisterer: prometheus.NewRegistry(),
		EnableTransaction: true,
	})
	require.NoError(t, err)
	defer client.Close()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
	require.NoError(t, err)
	defer producer.Close()
	var group errgroup.Group
	group.SetLimit(transactionsAtOnce)
	for range transactions {
		group.Go(func() error {
			transaction, err := client.NewTransaction(cluster.WaitLimit)
			if err != nil {
				return err
			}
			for range messages {
				message := &pulsar.ProducerMessage{Payload: []byte("12345678"), Transaction: transaction}
				if _, err := producer.Send(t.Context(), message); err != nil {
					return err
				}
			}
			return transaction.Commit(t.Context())
		})
	}
	require.NoError(t, group.Wait())
}

// messagesOfTransactionsAreCounted without the markers at their ends, which are entries.
func messagesOfTransactionsAreCounted(transactions, messages int) signalsCase {
	return func(t *testing.T, g *ground) {
		topic := g.topic(t, fmt.Sprintf("transactions-%d", messages), 0)
		w := g.watchTopics(t, topic)
		w.fresh()
		g.transact(t, topic, transactions, messages)
		published := float64(transactions * messages)
		// A poll counts markers of open transactions with the next poll.
		within := 0.05 + 2*transactionsAtOnce/published
		r := w.await("the messages without markers", func(r backlog.Reading) bool {
			return atLeast(r.Total, published*(1-within)) && !atLeast(r.Total, published*(1+within))
		})
		requireSignal(t, "ready", published, r.Ready, within)

		c := g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: 100})
		c.ack(c.take(int(published)))
		w.await("all to be done", func(r backlog.Reading) bool { return is(r.Total, 0) })
		c.consumer.Close()
		since := time.Now()
		w.fresh()
		for _, l := range w.all() { // leftover markers would wake a replica repeatedly
			if l.at.After(since) {
				requireSignal(t, "total without a consumer", 0, l.reading.Total, 0)
			}
		}
	}
}

// markersThatAreLeftAreDoneOnce: aborted transactions leave entries that no consumer receives. They look like backlog
// to a broker that has not read them, until the first consumer.
func markersThatAreLeftAreDoneOnce(t *testing.T, g *ground) {
	topic := g.topic(t, "markers", 0)
	w := g.watchTopics(t, topic)
	consume := func(messages int) {
		c := g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared, ReceiverQueueSize: 100})
		c.ack(c.take(messages))
		w.await("no backlog", func(r backlog.Reading) bool { return is(r.Total, 0) })
		c.consumer.Close()
	}
	consume(0)
	g.transact(t, topic, 5, 1)
	w.await("work", func(r backlog.Reading) bool { return atLeast(r.Ready, 1) })
	consume(5)
	since := time.Now()
	w.fresh()
	for _, l := range w.all() {
		if l.at.After(since) {
			requireSignal(t, "total without a consumer", 0, l.reading.Total, 0)
		}
	}
}

// aBacklogFromBeforeAnUnloadIsInMessages although Pulsar's counters restart: the first reading of the topic includes
// some of its entries.
func aBacklogFromBeforeAnUnloadIsInMessages(partitions int) signalsCase {
	return func(t *testing.T, g *ground) {
		topic := g.topic(t, fmt.Sprintf("peeked-%d", partitions), partitions)
		published := 0.0
		for _, name := range partitionNames(topic, partitions) {
			g.producer(t, name, 50).send(1000)
			published += 1000
			require.NoError(t, g.Unload(t.Context(), name))
		}
		r := g.watchTopics(t, topic).fresh()
		requireSignal(t, "total", published, r.Total, 0)
	}
}
