// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// manifest is a policy as a user writes it, so that Go's types cannot hide what the API server would see.
func manifest(name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.KindAutoscalingPolicy))
	object.SetNamespace(stage.Namespace)
	object.SetName(name)
	return object
}

func TestPolicyMistakesAreRefusedInPlainWords(t *testing.T) {
	onStage(t)
	target := map[string]any{"apiVersion": "compute.functionmesh.io/v1alpha1", "kind": "Function", "name": "f"}
	strategy := func(one map[string]any) map[string]any {
		return map[string]any{"scaleTargetRef": target, "maxReplicas": int64(5), "strategies": []any{one}}
	}
	tests := map[string]struct {
		spec map[string]any
		want string // empty: accepted
	}{
		"the shortest policy":       {map[string]any{"scaleTargetRef": target, "maxReplicas": int64(5)}, ""},
		"no target":                 {map[string]any{"maxReplicas": int64(5)}, "exactly one of scaleTargetRef, pulsarFunctionRef and targetSelector must be set"},
		"no maxReplicas":            {map[string]any{"scaleTargetRef": target}, "spec.maxReplicas: Required value"},
		"min above max":             {map[string]any{"scaleTargetRef": target, "minReplicas": int64(6), "maxReplicas": int64(5)}, "minReplicas must not be larger than maxReplicas"},
		"minReplicas below nothing": {map[string]any{"scaleTargetRef": target, "minReplicas": int64(-1), "maxReplicas": int64(5)}, "should be greater than or equal to 0"},
		"an objective of nothing":   {map[string]any{"scaleTargetRef": target, "maxReplicas": int64(5), "latencyObjective": "0s"}, "latencyObjective must be from 1s to 24h"},
		"an objective of a month":   {map[string]any{"scaleTargetRef": target, "maxReplicas": int64(5), "latencyObjective": "720h"}, "latencyObjective must be from 1s to 24h"},
		"a strategy nobody knows":   {map[string]any{"scaleTargetRef": target, "maxReplicas": int64(5), "strategies": []any{map[string]any{"type": "CPU"}}}, `Unsupported value: "CPU"`},
		"parameters of another strategy": {map[string]any{"scaleTargetRef": target, "maxReplicas": int64(5), "strategies": []any{
			map[string]any{"type": "Capacity", "backlogPerReplica": map[string]any{"messages": int64(5)}},
		}}, "backlogPerReplica must be set with type BacklogPerReplica, and only then"},
		"a strategy without its parameters": {map[string]any{"scaleTargetRef": target, "maxReplicas": int64(5), "strategies": []any{
			map[string]any{"type": "BacklogPerReplica"},
		}}, "backlogPerReplica must be set with type BacklogPerReplica, and only then"},
		"one of each strategy": {map[string]any{"scaleTargetRef": target, "maxReplicas": int64(5), "strategies": []any{
			map[string]any{"type": "Capacity"},
			map[string]any{"type": "BacklogPerReplica", "backlogPerReplica": map[string]any{"messages": int64(5)}},
			map[string]any{"type": "RatePerReplica", "ratePerReplica": map[string]any{"messagesPerSecond": "2500m"}},
			map[string]any{"type": "Utilization", "utilization": map[string]any{}},
		}}, ""},
		"a whole number of messages per second": {strategy(map[string]any{
			"type": "RatePerReplica", "ratePerReplica": map[string]any{"messagesPerSecond": int64(100)},
		}), ""},
		"no messages per second": {strategy(map[string]any{
			"type": "RatePerReplica", "ratePerReplica": map[string]any{"messagesPerSecond": "0"},
		}), "messagesPerSecond must be above 0 and at most 10^12, such as 100 or 2500m"},
		"fewer than no messages per second": {strategy(map[string]any{
			"type": "RatePerReplica", "ratePerReplica": map[string]any{"messagesPerSecond": int64(-1)},
		}), "messagesPerSecond must be above 0 and at most 10^12, such as 100 or 2500m"},
		"more messages per second than there are": {strategy(map[string]any{
			"type": "RatePerReplica", "ratePerReplica": map[string]any{"messagesPerSecond": "1001G"},
		}), "messagesPerSecond must be above 0 and at most 10^12, such as 100 or 2500m"},
		"messages per second in words": {strategy(map[string]any{
			"type": "RatePerReplica", "ratePerReplica": map[string]any{"messagesPerSecond": "many"},
		}), "messagesPerSecond must be above 0 and at most 10^12, such as 100 or 2500m"},
		"a rate without its parameters":         {strategy(map[string]any{"type": "RatePerReplica"}), "ratePerReplica must be set with type RatePerReplica, and only then"},
		"a utilization without its parameters":  {strategy(map[string]any{"type": "Utilization"}), "utilization must be set with type Utilization, and only then"},
		"a rate with another strategy's type":   {strategy(map[string]any{"type": "Capacity", "ratePerReplica": map[string]any{"messagesPerSecond": "1"}}), "ratePerReplica must be set with type RatePerReplica, and only then"},
		"a utilization with the default's type": {strategy(map[string]any{"type": "Capacity", "utilization": map[string]any{}}), "utilization must be set with type Utilization, and only then"},
		"a utilization of more than all":        {strategy(map[string]any{"type": "Utilization", "utilization": map[string]any{"targetPercent": int64(101)}}), "should be less than or equal to 100"},
		"a utilization of nothing":              {strategy(map[string]any{"type": "Utilization", "utilization": map[string]any{"targetPercent": int64(0)}}), "should be greater than or equal to 1"},
		"the same strategy twice": {map[string]any{"scaleTargetRef": target, "maxReplicas": int64(5), "strategies": []any{
			map[string]any{"type": "BacklogPerReplica", "backlogPerReplica": map[string]any{"messages": int64(5)}},
			map[string]any{"type": "BacklogPerReplica", "backlogPerReplica": map[string]any{"messages": int64(9)}},
		}}, "strategies must not have the same type twice"},
		"a window of a day": {map[string]any{"scaleTargetRef": target, "maxReplicas": int64(5), "behavior": map[string]any{
			"scaleDown": map[string]any{"stabilizationWindowSeconds": int64(86400)},
		}}, "should be less than or equal to 3600"},
		"an admin URL with a password": {map[string]any{"scaleTargetRef": target, "maxReplicas": int64(5), "pulsar": map[string]any{
			"adminURL": "http://admin:secret@pulsar:8080",
		}}, "adminURL must be http://host:port or https://host:port, with no path and no credentials"},
		"a path to a Secret": {map[string]any{"scaleTargetRef": target, "maxReplicas": int64(5), "pulsar": map[string]any{
			"authSecret": "shop/token",
		}}, "authSecret must be the name of a Secret"},
		"certificates without a key": {map[string]any{"scaleTargetRef": target, "maxReplicas": int64(5), "pulsar": map[string]any{
			"tlsConfig": map[string]any{"certSecretName": "ca"},
		}}, "spec.pulsar.tlsConfig.certSecretKey: Required value"},
		"certificates under a path": {map[string]any{"scaleTargetRef": target, "maxReplicas": int64(5), "pulsar": map[string]any{
			"tlsConfig": map[string]any{"certSecretName": "ca", "certSecretKey": "/etc/ca"},
		}}, "certSecretKey must be a key of a Secret"},
		"a mode nobody knows": {map[string]any{"scaleTargetRef": target, "maxReplicas": int64(5), "mode": "Auto"}, `Unsupported value: "Auto"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := scene.Client.Create(t.Context(), manifest("mistake", test.spec), client.DryRunAll)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestPolicyTargetsCannotBeChanged(t *testing.T) {
	onStage(t)
	p := newPolicy("settled-on")
	require.NoError(t, scene.Client.Create(t.Context(), p))
	t.Cleanup(func() { require.NoError(t, scene.Client.Delete(context.WithoutCancel(t.Context()), p)) })
	changed := p.DeepCopy()
	changed.Spec.ScaleTargetRef.Name = "another"
	require.ErrorContains(t, scene.Client.Patch(t.Context(), changed, client.MergeFrom(p)),
		"scaleTargetRef cannot be changed; create another policy and delete this one")
}

func TestPolicyInModeRecommendShowsAndChangesNothing(t *testing.T) {
	const name = "advised"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 10 * time.Millisecond})
	p := newPolicy(name)
	p.Spec.Mode = v1alpha1.ModeRecommend
	addPolicy(t, p)
	publish(t, f, load.Constant(250))
	awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionTrue, "Recommending")
	await(t, f, "a recommendation of more than one replica", time.Minute, func(ctx context.Context) (bool, string, error) {
		p, err := f.Policy(ctx)
		return err == nil && p.Status.DesiredReplicas != nil && *p.Status.DesiredReplicas >= 3, "fewer", err
	})
	replicas, err := f.Replicas(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(1), replicas.Spec)
	hpa, err := f.Autoscaler(t.Context())
	require.NoError(t, err)
	require.Nil(t, hpa)
}

func TestPolicyDoesNotFightTheAutoscalerOfFunctionMesh(t *testing.T) {
	const name = "contested"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 10 * time.Millisecond})
	setMaxReplicas(t, name, int64(5))
	await(t, f, "the autoscaler of Function Mesh", time.Minute, func(ctx context.Context) (bool, string, error) {
		err := scene.Client.Get(ctx, client.ObjectKey{Namespace: stage.Namespace, Name: name + "-function"}, meshAutoscaler())
		return err == nil, "not there", client.IgnoreNotFound(err)
	})
	addPolicy(t, newPolicy(name))
	said := awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionFalse, "FunctionHasOwnAutoscaler")
	require.Contains(t, said, "remove spec.maxReplicas")
	hpa, err := f.Autoscaler(t.Context())
	require.NoError(t, err)
	require.Nil(t, hpa, "two autoscalers on one target stop both")

	// Function Mesh forgets its autoscaler when maxReplicas goes, as it really does, so the next words are about that one.
	setMaxReplicas(t, name, nil)
	said = awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionFalse, "RivalAutoscaler")
	require.Contains(t, said, "HorizontalPodAutoscaler "+name+"-function scales Function "+name)
	left := meshAutoscaler()
	left.SetNamespace(stage.Namespace)
	left.SetName(name + "-function")
	require.NoError(t, scene.Client.Delete(t.Context(), left))
	awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionTrue, "Scaling")
}

func meshAutoscaler() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("autoscaling/v2")
	object.SetKind("HorizontalPodAutoscaler")
	return object
}

// setMaxReplicas sets or removes spec.maxReplicas of a Function.
func setMaxReplicas(t *testing.T, name string, value any) {
	t.Helper()
	function := &unstructured.Unstructured{}
	function.SetGroupVersionKind(mesh.GroupVersion().WithKind(mesh.KindFunction))
	require.NoError(t, scene.Client.Get(t.Context(), client.ObjectKey{Namespace: stage.Namespace, Name: name}, function))
	before := function.DeepCopy()
	if value == nil {
		unstructured.RemoveNestedField(function.Object, "spec", "maxReplicas")
	} else {
		require.NoError(t, unstructured.SetNestedField(function.Object, value, "spec", "maxReplicas"))
	}
	require.NoError(t, scene.Client.Patch(t.Context(), function, client.MergeFrom(before)))
}
