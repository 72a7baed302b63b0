// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

func sampleJob(contender string) job {
	return job{
		contender: contender, function: "resize", topic: "persistent://public/default/resize-in", adminURL: "http://proxy:1",
		scaler:    "scaler:2",
		objective: 30 * time.Second, cooldown: time.Minute, most: 12,
	}
}

func TestAllContendersHaveTheSameBoundsAndTheSameCooldown(t *testing.T) {
	for _, name := range all() {
		j := sampleJob(name)
		if name == ours {
			p, ok := j.object().(*v1alpha1.AutoscalingPolicy)
			require.True(t, ok)
			require.Equal(t, v1alpha1.ActuatorKEDA, p.Spec.Actuator)
			require.Zero(t, *p.Spec.MinReplicas)
			require.Equal(t, int32(12), p.Spec.MaxReplicas)
			require.Equal(t, int32(60), *p.Spec.Behavior.ScaleDown.CooldownPeriodSeconds)
			require.NotEqual(t, "resize", j.scaledObjectName())
			continue
		}
		object, ok := j.object().(*unstructured.Unstructured)
		require.True(t, ok)
		spec, _, err := unstructured.NestedMap(object.Object, "spec")
		require.NoError(t, err)
		delete(spec, "triggers")
		require.Equal(t, map[string]any{
			"scaleTargetRef": map[string]any{
				"apiVersion": "compute.functionmesh.io/v1alpha1", "kind": "Function",
				"name": "resize",
			},
			"minReplicaCount": int64(0), "maxReplicaCount": int64(12), "cooldownPeriod": int64(60),
		}, spec, "all other fields have KEDA's defaults")
		require.Equal(t, "resize", j.scaledObjectName())
	}
}

func TestTriggersSayWhatTheirUsersWould(t *testing.T) {
	tuned := map[string]any{
		"adminURL": "http://proxy:1", "topic": "persistent://public/default/resize-in",
		"subscription": "public/default/resize", "msgBacklogThreshold": "750",
	}
	scaler := map[string]any{
		"scalerAddress": "scaler:2", "topic": "persistent://public/default/resize-in",
		"subscription": "public/default/resize", "messagesPerReplica": "750",
	}
	for name, want := range map[string]map[string]any{
		kedaTuned:    {"type": "pulsar", "metadata": tuned},
		externalPush: {"type": "external-push", "metadata": scaler},
		externalPull: {"type": "external", "metadata": scaler},
	} {
		j := sampleJob(name)
		j.threshold = 750
		object, ok := j.object().(*unstructured.Unstructured)
		require.True(t, ok)
		triggers, _, err := unstructured.NestedSlice(object.Object, "spec", "triggers")
		require.NoError(t, err)
		require.Equal(t, []any{want}, triggers, name)
	}
}

func TestAScaledObjectIsReadyOnceItsMetricsAreKnown(t *testing.T) {
	status := func(ready string, metrics ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
			"externalMetricNames": metrics,
			"conditions": []any{
				map[string]any{"type": "Active", "status": "True"},
				map[string]any{"type": "Ready", "status": ready},
			},
		}}}
	}
	require.True(t, readyToScale(status("True", "s0-x")))
	require.False(t, readyToScale(status("True")))
	require.False(t, readyToScale(status("Unknown", "s0-x")))
	require.False(t, readyToScale(&unstructured.Unstructured{Object: map[string]any{}}))
}
