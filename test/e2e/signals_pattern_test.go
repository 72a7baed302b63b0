// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
)

// followed is a namespace for the test, and the subscription of all its topics with the prefix in-.
func (g *ground) followed(t *testing.T, namespace string) (prefix string, subscription backlog.Subscription) {
	t.Helper()
	g.demand(t, http.MethodPut, "/admin/v2/namespaces/public/"+namespace, "")
	prefix = "persistent://public/" + namespace + "/"
	pattern, err := backlog.ParsePattern(prefix + "in-.*")
	require.NoError(t, err)
	return prefix, backlog.NewSubscription(g.cluster, "s").WithPatterns(pattern)
}

// filled creates a topic with the subscription and that many messages on each partition.
func (g *ground) filled(t *testing.T, topic string, partitions, messages int) {
	t.Helper()
	require.NoError(t, g.CreateTopic(t.Context(), topic, partitions))
	require.NoError(t, g.CreateSubscription(t.Context(), topic, "s", broker.Earliest))
	for _, name := range partitionNames(topic, partitions) {
		p := g.producer(t, name, 1)
		p.send(messages)
		p.producer.Close() // it would recreate a deleted topic
	}
}

// topicsOfAPatternAreFollowedAsTheyComeAndGo in a namespace that also has system topics.
func topicsOfAPatternAreFollowedAsTheyComeAndGo(t *testing.T, g *ground) {
	prefix, subscription := g.followed(t, "followed")
	g.filled(t, prefix+"in-a", 0, 100)
	g.filled(t, prefix+"in-p", 3, 10)
	g.filled(t, prefix+"out", 0, 1000)
	require.NoError(t, g.CreateTopic(t.Context(), prefix+"in-unloaded", 2)) // and not subscribed
	g.policy(t, prefix+"in-a", "maxUnackedMessagesOnSubscription", "5000")  // creates __change_events
	w := g.watch(t, subscription)
	r := w.await("all topics", func(r backlog.Reading) bool { return r.Coverage.Complete() })
	requireSignal(t, "total over a pattern", 130, r.Total, 0)
	require.Equal(t, 4, r.Partitions)

	listed := map[string]bool{}
	require.NoError(t, g.source.List(t.Context(), backlog.Namespace{Cluster: g.cluster, Name: "public/followed"},
		func(topic string) { listed[topic] = true }))
	require.Equal(t, map[string]bool{
		prefix + "in-a": true, prefix + "in-p": true, prefix + "in-unloaded": true, prefix + "out": true,
	}, listed)

	g.filled(t, prefix+"in-new", 2, 20)
	filled := time.Now()
	r = w.await("the new topic", func(r backlog.Reading) bool { return is(r.Total, 170) })
	t.Logf("SIGNAL %s: a new topic was read after %s", t.Name(), r.At.Sub(filled).Round(time.Millisecond))
	require.Equal(t, 6, r.Partitions)
	for _, l := range w.all() {
		if total, err := l.reading.Total.Value(); err == nil && l.err == nil {
			whole := is(l.reading.Total, 130) || is(l.reading.Total, 170)
			require.True(t, whole || total > 130 && total < 170 && !l.reading.At.After(filled),
				"neither half of a topic nor one twice: %v", total)
		}
	}

	require.NoError(t, g.DeleteTopic(t.Context(), prefix+"in-a"))
	r = w.await("the deleted topic to drop out", func(r backlog.Reading) bool { return is(r.Total, 70) })
	require.Equal(t, 5, r.Partitions)
	require.NoError(t, r.Trouble)
}

// aConsumerOfAPatternCountsOnce on any number of topics. The product reports topics that it has not discovered.
func aConsumerOfAPatternCountsOnce(t *testing.T, g *ground) {
	prefix, subscription := g.followed(t, "consumed")
	for _, topic := range []string{"in-a", "in-b"} {
		require.NoError(t, g.CreateTopic(t.Context(), prefix+topic, 0))
		g.producer(t, prefix+topic, 1).send(10)
	}
	w := g.watch(t, subscription)
	w.awaitError(backlog.ErrSubscriptionNotFound)
	for i := range 2 {
		g.consumer(t, pulsar.ConsumerOptions{
			TopicsPattern: prefix + "in-.*", Type: pulsar.Shared, Properties: instance("public/default/f", i),
		})
	}
	r := w.await("consumers with all messages", func(r backlog.Reading) bool {
		return is(r.Consumers, 2) && is(r.Total, 20) && is(r.Unacked, 20)
	})
	requireSignal(t, "consumers over a pattern", 2, r.Consumers, 0)
	require.Equal(t, []string{"public/default/f"}, r.Components)
}
