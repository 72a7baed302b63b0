// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// autoscalerNamed returns an empty HorizontalPodAutoscaler to read into.
func autoscalerNamed(name string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: name}}
}

// maxReplicasOf returns that of a Function; nil without one.
func maxReplicasOf(ctx context.Context, f *stage.Function) (any, error) {
	function := f.Object()
	err := scene.Client.Get(ctx, client.ObjectKeyFromObject(function), function)
	value, _, _ := unstructured.NestedFieldNoCopy(function.Object, "spec", "maxReplicas")
	return value, err
}

// awaitAutoscalers waits until exactly the autoscalers with true exist.
func awaitAutoscalers(t *testing.T, f *stage.Function, want map[string]bool) {
	t.Helper()
	f.Await(t, fmt.Sprintf("autoscalers %v", want), func(ctx context.Context) (bool, string, error) {
		got, same := map[string]bool{}, true
		for name, exists := range want {
			absent, err := gone(ctx, autoscalerNamed(name))
			if err != nil {
				return false, "", err
			}
			got[name] = !absent
			same = same && got[name] == exists
		}
		return same, fmt.Sprint(got), nil
	})
}

func TestCoreTakeOverAndRestoreTheAutoscalerOfFunctionMesh(t *testing.T) {
	t.Parallel()
	const name, replicas = "taken", 3
	ours, own, foreign := plan.AutoscalerName(name), name+"-function", name+"-by-hand"
	f := addFunction(t,
		stage.FunctionConfig{
			Name: name, ServiceTime: 10 * time.Millisecond, Replicas: replicas,
			Edit: func(function *unstructured.Unstructured) {
				require.NoError(t, unstructured.SetNestedField(function.Object, int64(7), "spec", "maxReplicas"))
			},
		})
	byHand := cpuAutoscaler(foreign, statefulSetOf(name))
	create(t, byHand)
	awaitAutoscalers(t, f, map[string]bool{own: true, foreign: true})
	p := newPolicy(name)
	p.Spec.MinReplicas = new(int32(replicas))
	addPolicy(t, p)
	f.AwaitConditions(t, "Ready=False/FunctionHasOwnAutoscaler")
	requireNoAutoscaler(t, f, replicas)

	patchPolicy(t, p, `{"spec":{"conflictPolicy":"TakeOver"}}`)
	awaitAutoscalers(t, f, map[string]bool{own: false, foreign: false, ours: true})
	f.AwaitConditions(t, "Ready=True/Scaling")
	value, err := maxReplicasOf(t.Context(), f)
	require.NoError(t, err)
	require.Nil(t, value)

	t.Log("it refuses again")
	patchPolicy(t, p, `{"spec":{"conflictPolicy":"Refuse"}}`)
	awaitAutoscalers(t, f, map[string]bool{own: true, foreign: true, ours: false})
	f.AwaitConditions(t, "Ready=False/FunctionHasOwnAutoscaler")
	got := f.AwaitPolicy(t, "nothing to restore", func(p *v1alpha1.AutoscalingPolicy) bool {
		return p.Status.TakenOver == nil && len(p.Finalizers) == 0
	})

	t.Log("it takes over once more, and is deleted")
	patchPolicy(t, p, `{"spec":{"conflictPolicy":"TakeOver"}}`)
	awaitAutoscalers(t, f, map[string]bool{own: false, foreign: false, ours: true})
	require.NoError(t, scene.Client.Delete(t.Context(), got))
	awaitAutoscalers(t, f, map[string]bool{own: true, foreign: true, ours: false})
	scene.AwaitGone(t, newPolicy(name))
	value, err = maxReplicasOf(t.Context(), f)
	require.NoError(t, err)
	require.Equal(t, int64(7), value)
	back := autoscalerNamed(foreign)
	require.NoError(t, scene.Client.Get(t.Context(), client.ObjectKeyFromObject(back), back))
	require.Equal(t, byHand.Labels, back.Labels)
	require.Equal(t, byHand.Spec, back.Spec)
	requireUntouched(t, f, replicas)
}
