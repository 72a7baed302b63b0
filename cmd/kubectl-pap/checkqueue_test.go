// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

func TestTheReceiveQueueIsComparedWithTheObjective(t *testing.T) {
	mesh := func(queue int) map[string]any {
		entry := functionWithQueues(map[string]int{"in": queue})["spec"].(map[string]any)
		entry["name"] = "resize"
		return map[string]any{
			"apiVersion": "compute.functionmesh.io/v1alpha1", "kind": "FunctionMesh",
			"spec": map[string]any{"functions": []any{map[string]any{"name": "other"}, entry}},
		}
	}
	component := func(p *v1alpha1.AutoscalingPolicy) {
		p.Spec.ScaleTargetRef.Kind, p.Spec.ScaleTargetRef.Name = "FunctionMesh", "etl"
		p.Spec.ScaleTargetRef.Component = v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadFunction, Name: "resize"}
	}
	slow := func(p *v1alpha1.AutoscalingPolicy) { p.Status.Capacity.MessagesPerSecond = v1alpha1.NewRate(10) }
	subscribed := func(p *v1alpha1.AutoscalingPolicy) {
		p.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "resize"}
		p.Spec.Subscription = &v1alpha1.Subscription{Name: "resize"}
	}
	const meshPath = "/apis/compute.functionmesh.io/v1alpha1/namespaces/media/functionmeshes/etl"
	for name, test := range map[string]struct {
		changes []func(*v1alpha1.AutoscalingPolicy)
		path    string
		object  map[string]any
		want    string
	}{
		"the largest of several topics": {
			nil, functionPath, functionWithQueues(map[string]int{"a": 10, "b": 2000}),
			"warning receive queue: receiverQueueSize 2000, the largest of the target, is 32s of a replica's work for each " +
				"partition, and latencyObjective is 30s: messages in the queue wait longer, and no new replica gets them: set " +
				"spec.input.sourceSpecs.<topic>.receiverQueueSize to 123 divided by the number of partitions, which is 2 s of " +
				"a replica's work",
		},
		"a topic without a size has the default": {
			nil, functionPath, functionWithQueues(map[string]int{"a": 10, "b": 0}), "ok receive queue: receiverQueueSize 1000,",
		},
		"the capacity is not learned": {
			[]func(*v1alpha1.AutoscalingPolicy){func(p *v1alpha1.AutoscalingPolicy) { p.Status.Capacity = nil }},
			"", nil,
			"unknown receive queue: it is checked once the adapter has learned",
		},
		"a pattern has the default": {nil, functionPath, functionWithQueues(nil), "ok receive queue: receiverQueueSize 1000,"},
		"a component of a FunctionMesh": {
			[]func(*v1alpha1.AutoscalingPolicy){component},
			meshPath, mesh(7),
			"ok receive queue: receiverQueueSize 7, the largest of the target, is 0.1s",
		},
		"a FunctionMesh that the user may not read": {
			[]func(*v1alpha1.AutoscalingPolicy){component}, "", nil, "unknown receive queue: your user needs get on " +
				"functionmeshes.compute.functionmesh.io in namespace media",
		},
		"that of a Deployment is not known": {
			[]func(*v1alpha1.AutoscalingPolicy){slow, subscribed},
			"", nil,
			"unknown receive queue: it could not be read; Pulsar's default of 1000 would be 100s of a replica's work for each " +
				"partition, and latencyObjective is 30s: messages in the queue wait longer, and no new replica gets them: set " +
				"receiverQueueSize of the consumers to 20 divided by the number of partitions, which is 2 s of a replica's work",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t, judgedPolicy(test.changes...))
			server.objects[test.path] = test.object
			out, err := server.check(t, "", "resize")
			require.NoError(t, err)
			require.Contains(t, flat(out), test.want)
		})
	}
}
