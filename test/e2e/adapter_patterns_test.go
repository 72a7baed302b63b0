// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// testPatternSignals reads through the aggregator the signals of Functions without named topics, in both forms of
// Function Mesh.
func testPatternSignals(t *testing.T) {
	const prefix = "persistent://public/hunted/"
	_, err := scene.Broker.Demand(t.Context(), http.MethodPut, "/admin/v2/namespaces/public/hunted", nil)
	require.NoError(t, err)
	messages := pulsarClient(t, scene.Broker, "")
	functions := map[string]map[string]any{
		"hunter":  {"topicPattern": prefix + "in-.*"},
		"tracker": {"sourceSpecs": map[string]any{prefix + "in-.*": map[string]any{"isRegexPattern": true}}},
	}
	add := func(topic string, partitions, count int) {
		require.NoError(t, scene.Broker.CreateTopic(t.Context(), prefix+topic, partitions))
		for name := range functions {
			require.NoError(t,
				scene.Broker.CreateSubscription(t.Context(), prefix+topic, "public/default/"+name, broker.Earliest))
		}
		fill(t, messages, prefix+topic, count)
	}
	add("in-plain", 0, 100)
	add("in-parted", 3, 30)
	add("out", 0, 1000)
	for name, input := range functions {
		addWithoutReplicas(t, mesh.KindFunction, name, scene.Broker, map[string]any{"input": input})
	}
	for name := range functions {
		aggregated(t).awaits(t, mesh.KindFunction, name, 130)
	}

	add("in-late", 2, 40)
	for name := range functions {
		aggregated(t).awaits(t, mesh.KindFunction, name, 170)
	}
	require.NoError(t, scene.Broker.DeleteTopic(t.Context(), prefix+"in-plain"))
	for name := range functions {
		aggregated(t).awaits(t, mesh.KindFunction, name, 70)
	}
}

// testPatternScaling scales a Function that consumes a pattern: two topics together get more messages than one replica
// can process.
func testPatternScaling(t *testing.T) {
	const name, second = "gatherer", "gatherer-in-second"
	require.NoError(t, scene.Broker.CreateTopic(t.Context(), second, 0))
	t.Cleanup(func() { require.NoError(t, scene.Broker.DeleteTopic(context.WithoutCancel(t.Context()), second)) })
	f := addFunction(t, stage.FunctionConfig{
		Name: name, ServiceTime: 10 * time.Millisecond, Partitions: 2,
		Edit: func(object *unstructured.Unstructured) {
			object.Object["spec"].(map[string]any)["input"] = map[string]any{
				"typeClassName": "[B", "topicPattern": broker.TopicName(name + "-in.*"),
			}
		},
	})
	addPolicy(t, newPolicy(name))
	other, err := load.New(load.Config{ServiceURL: scene.Broker.ServiceURL(), Topic: broker.TopicName(second)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	stop := f.Load(t, load.Constant(130))
	var group errgroup.Group
	group.Go(func() error { return other.Run(ctx, load.Constant(130)) })
	t.Cleanup(func() {
		cancel()
		require.NoError(t, group.Wait())
		other.Close()
	})
	f.AwaitReplicas(t, 3, 20) // two would be enough for either topic
	stop()
	cancel()
	aggregated(t).awaits(t, mesh.KindFunction, name, 0)
	f.AwaitConditions(t, "Ready=True/Scaling")
}
