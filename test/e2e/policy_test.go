// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func TestPolicyInModeRecommendShowsAndChangesNothing(t *testing.T) {
	t.Parallel()
	const name = "advised"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 10 * time.Millisecond})
	p := newPolicy(name)
	p.Spec.Mode = v1alpha1.ModeRecommend
	addPolicy(t, p)
	publish(t, f, load.Constant(250))
	f.AwaitConditions(t, "Ready=True/Recommending")
	f.Await(t, "a recommendation of more than one replica", func(ctx context.Context) (bool, string, error) {
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
	t.Parallel()
	const name = "contested"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 10 * time.Millisecond})
	setMaxReplicas(t, name, int64(5))
	f.Await(t, "the autoscaler of Function Mesh", func(ctx context.Context) (bool, string, error) {
		err := scene.Client.Get(ctx, client.ObjectKey{Namespace: stage.Namespace, Name: name + "-function"}, meshAutoscaler())
		return err == nil, "not there", client.IgnoreNotFound(err)
	})
	addPolicy(t, newPolicy(name))
	said := f.AwaitConditions(t, "Ready=False/FunctionHasOwnAutoscaler")
	require.Contains(t, said, "remove spec.maxReplicas")
	hpa, err := f.Autoscaler(t.Context())
	require.NoError(t, err)
	require.Nil(t, hpa, "two autoscalers on one target stop both")

	// Function Mesh keeps its autoscaler after the removal of maxReplicas, so the next message is about that one.
	setMaxReplicas(t, name, nil)
	said = f.AwaitConditions(t, "Ready=False/AutoscalerOrphaned")
	require.Contains(t, said, "HorizontalPodAutoscaler "+name+"-function still scales Function "+name)
	left := meshAutoscaler()
	left.SetNamespace(stage.Namespace)
	left.SetName(name + "-function")
	require.NoError(t, scene.Client.Delete(t.Context(), left))
	f.AwaitConditions(t, "Ready=True/Scaling")
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
