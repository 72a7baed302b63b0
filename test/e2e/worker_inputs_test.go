// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// aPartitionIsReadBack: an input may be one partition of a topic. It is consumed and read as a topic.
func aPartitionIsReadBack(t *testing.T, w *workerBroker) {
	require.NoError(t, w.CreateTopic(t.Context(), "thirds", 3))
	w.create(t, function.KindFunction, w.function("third", "thirds-partition-2"))
	got := w.describe(t, function.KindFunction, "third")
	topic := broker.TopicName("thirds-partition-2")
	require.Equal(t, []string{topic}, got.Subscription.Topics)
	require.Equal(t, backlog.Shared, w.consumed(t, topic, got.Subscription.Name, 2).Type)
	sample, err := w.source.Fetch(t.Context(), backlog.Topic{Cluster: w.cluster, Name: topic},
		backlog.Request{Detail: backlog.Slim})
	require.NoError(t, err)
	require.Len(t, sample.Partitions, 1)
	require.Equal(t, backlog.NotPartitioned, sample.Partitions[0].Index)
}

// theWorkersOwnURLIsAsked if the brokers serve no functions API: nothing listens at their URL here.
func theWorkersOwnURLIsAsked(t *testing.T, w *workerBroker) {
	component := w.component(function.KindFunction, "shared")
	component.Cluster.AdminURL = "http://127.0.0.1:1"
	_, err := w.worker.Describe(t.Context(), component)
	require.ErrorIs(t, err, backlog.ErrUnreachable)

	component.WorkerURL = w.AdminURL()
	got, err := w.worker.Describe(t.Context(), component)
	require.NoError(t, err)
	require.Equal(t, component.Cluster, got.Subscription.Cluster, "its topics are read from the brokers")
	require.Equal(t, "public/default/shared", got.Subscription.Name)
	sample, err := w.worker.FetchInstances(t.Context(), component)
	require.NoError(t, err)
	require.Len(t, sample.Instances, 2)
}

// propertiesAreReadBack: consumer properties override other settings of a consumer. Workers return those of sinks, and
// only 4.2.4 those of functions; otherwise only the broker knows them.
func propertiesAreReadBack(t *testing.T, w *workerBroker) {
	specs := func(topic string) map[string]any {
		require.NoError(t, w.CreateTopic(t.Context(), topic, 0))
		return map[string]any{topic: map[string]any{"consumerProperties": map[string]any{
			"subscriptionName": "by property", "subscriptionType": "Failover",
		}}}
	}
	w.create(t, function.KindSink, map[string]any{
		"tenant": "public", "namespace": "default", "name": "named", "className": replica.SinkClass, "inputSpecs": specs(
			"named-in"),
		"sourceSubscriptionName": "mine", "parallelism": 2, "retainKeyOrdering": true,
	})
	got := w.describe(t, function.KindSink, "named")
	require.Equal(t, backlog.Failover, w.consumed(t, broker.TopicName("named-in"), "by property", 2).Type)
	require.Equal(t, "by property", got.Subscription.Name)
	require.Equal(t, backlog.Failover, got.Type)

	config := w.function("nameless")
	delete(config, "inputs")
	config["inputSpecs"] = specs("nameless-in")
	w.create(t, function.KindFunction, config)
	w.consumed(t, broker.TopicName("nameless-in"), "by property", 2)
	shown := "public/default/nameless" // the worker does not return it
	if w.Version() == "4.2.4" {
		shown = "by property"
	}
	require.Equal(t, shown, w.describe(t, function.KindFunction, "nameless").Subscription.Name)
}
