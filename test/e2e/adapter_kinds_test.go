// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// testSink scales a Sink as a Function, and reads its signals.
func testSink(t *testing.T) {
	const name = "warehouse"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 10 * time.Millisecond, Sink: true})
	p := newPolicy(name)
	p.Spec.ScaleTargetRef.Kind = mesh.KindSink
	addPolicy(t, p)
	stop := publish(t, f, load.Constant(250)) // one replica processes 100/s
	aggregated(t).awaitsBacklog(t, mesh.KindSink, name)
	f.AwaitReplicas(t, 3, 20)
	stop()
	aggregated(t).awaits(t, mesh.KindSink, name, 0)
	f.AwaitConditions(t, "Ready=True/Scaling")
	hpa, err := f.Autoscaler(t.Context())
	require.NoError(t, err)
	require.Equal(t, mesh.KindSink, hpa.Spec.ScaleTargetRef.Kind)
}

// testBatchSource reads the tasks of a batch Source, which its replicas share through a topic that no field names.
func testBatchSource(t *testing.T) {
	const name = "crawler"
	tasks := broker.TopicName(name + "-intermediate")
	require.NoError(t, scene.Broker.CreateTopic(t.Context(), tasks, 0))
	t.Cleanup(func() { require.NoError(t, scene.Broker.DeleteTopic(context.WithoutCancel(t.Context()), tasks)) })
	require.NoError(t,
		scene.Broker.CreateSubscription(t.Context(), tasks, "BatchSourceExecutor-public/default/"+name, broker.Earliest))
	fill(t, pulsarClient(t, scene.Broker, ""), tasks, 30)
	addWithoutReplicas(t, mesh.KindSource, name, scene.Broker, map[string]any{
		"output":            map[string]any{"topic": "crawled"},
		"batchSourceConfig": map[string]any{"discoveryTriggererClassName": "shop.Daily"},
	})
	aggregated(t).awaits(t, mesh.KindSource, name, 30)
}
