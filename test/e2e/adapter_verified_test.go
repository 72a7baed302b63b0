// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
)

// subscribed creates a topic with a subscription for the test.
func subscribed(t *testing.T, topic, subscription string) {
	t.Helper()
	require.NoError(t, scene.Broker.CreateTopic(t.Context(), topic, 0))
	t.Cleanup(func() { require.NoError(t, scene.Broker.DeleteTopic(context.WithoutCancel(t.Context()), topic)) })
	require.NoError(t, scene.Broker.CreateSubscription(t.Context(), topic, subscription, broker.Earliest))
}

// testSharedSubscription has two Functions that share a subscription by mistake.
func testSharedSubscription(t *testing.T) {
	const subscription = "disputed"
	subscribed(t, "disputed-in", subscription)
	connected := pulsarClient(t, scene.Broker, "")
	others := map[string]string{"castor": "pollux", "pollux": "castor"}
	for name := range others {
		addWithoutReplicas(t, mesh.KindFunction, name, scene.Broker, map[string]any{
			"input": map[string]any{"topics": []any{"disputed-in"}}, "subscriptionName": subscription,
		})
		consumer, err := connected.Subscribe(pulsar.ConsumerOptions{
			Topic: broker.TopicName("disputed-in"), SubscriptionName: subscription, Type: pulsar.Shared,
			Properties: instance("public/default/"+name, 0),
		})
		require.NoError(t, err)
		t.Cleanup(consumer.Close)
	}
	for name := range others {
		advise(t, name, nil) // only now: consumers of an idle subscription are read once a minute
	}
	for name, other := range others {
		said := scene.AwaitConditions(t, name, "SubscriptionVerified=False/SubscriptionShared")
		require.Contains(t, said, `subscription "disputed" is consumed by the function public/default/`+other+" too")
		require.Contains(t, said, "give each a spec.subscriptionName of its own")
	}
}

// testSubscriptionType has a Function with replicas that first subscribe in another way than its fields, and then as
// they say.
func testSubscriptionType(t *testing.T) {
	const name = "strict"
	subscribed(t, name+"-in", "public/default/"+name)
	addWithoutReplicas(t, mesh.KindFunction, name, scene.Broker, map[string]any{
		"input": map[string]any{"topics": []any{name + "-in"}}, "processingGuarantee": "effectively_once",
	})
	advise(t, name, nil)
	connected := pulsarClient(t, scene.Broker, "")
	subscribe := func(kind pulsar.SubscriptionType) pulsar.Consumer {
		consumer, err := connected.Subscribe(pulsar.ConsumerOptions{
			Topic: broker.TopicName(name + "-in"), SubscriptionName: "public/default/" +
				name, Type: kind, Properties: instance("public/default/"+name, 0),
		})
		require.NoError(t, err)
		t.Cleanup(consumer.Close)
		return consumer
	}
	wrong := subscribe(pulsar.Shared)
	said := scene.AwaitConditions(t, name, "SubscriptionVerified=False/SubscriptionTypeDiffers")
	require.Contains(t, said,
		`Function strict promises subscription "public/default/strict" of type Failover and the broker reports Shared`)
	require.Contains(t, said, "restart the replicas")

	wrong.Close()
	subscribe(pulsar.Failover)
	scene.AwaitConditions(t, name, "SubscriptionVerified=True/AsExpected")
}
