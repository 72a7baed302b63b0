// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestEventsReachThePoliciesTheyMatterTo(t *testing.T) {
	sibling, other := fixture.Policy(), fixture.Policy()
	sibling.Name, other.Name, other.Spec.ScaleTargetRef.Name = "sibling", "other", "crop"
	env := newTestEnv(t, fixture.Policy(), sibling, other)
	ours := otherAutoscaler("compute.functionmesh.io/v1alpha1", "Function", "gone")
	ours.Name = plan.AutoscalerName("other")
	ours.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.KindAutoscalingPolicy, Name: "other"}}
	tests := map[string]struct {
		object client.Object
		want   []string
	}{
		"an autoscaler on the Function": {
			otherAutoscaler("compute.functionmesh.io/v1alpha1", "Function", "resize"),
			[]string{"resize", "sibling"},
		},
		"an autoscaler on the StatefulSet": {
			otherAutoscaler("apps/v1", "StatefulSet", "resize-function"),
			[]string{"resize", "sibling"},
		},
		"an autoscaler on something else":        {otherAutoscaler("apps/v1", "Deployment", "resize"), nil},
		"a Function of another group":            {otherAutoscaler("openfaas.com/v1", "Function", "resize"), nil},
		"an autoscaler of ours that was altered": {ours, []string{"other"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.ElementsMatch(t, test.want, fixture.Enqueued(t, autoscalerUsers(env.client), test.object))
		})
	}
	require.ElementsMatch(t, []string{"resize", "sibling"},
		fixture.Enqueued(t, workloadUsers(env.client), target.Decode(fixture.Function())))
	worker := fixture.Policy()
	worker.Name, worker.Spec.ScaleTargetRef = "worker", v1alpha1.ScaleTargetRef{
		APIVersion: "apps/v1", Kind: "StatefulSet",
		Name: "pf-public-default-my-function",
	}
	require.NoError(t, env.client.Create(t.Context(), worker))
	onWorker := otherAutoscaler("apps/v1", "StatefulSet", "pf-public-default-my-function")
	require.Equal(t, []string{"worker"}, fixture.Enqueued[client.Object](t, autoscalerUsers(env.client), onWorker),
		"although the name ends as those of Function Mesh do")
	for what, object := range map[string]*unstructured.Unstructured{
		"a ScaledObject on the Function": testScaledObject("compute.functionmesh.io/v1alpha1", "Function",
			"resize"),
		"a ScaledObject on its StatefulSet":          testScaledObject("apps/v1", "StatefulSet", "resize-function"),
		"a VerticalPodAutoscaler on its StatefulSet": testVerticalAutoscaler("Auto"),
		"its StatefulSet":                            fixture.StatefulSet(nil),
	} {
		require.ElementsMatch(t, []string{"resize", "sibling"},
			fixture.Enqueued(t, workloadUsers(env.client), target.Decode(object)), what)
	}
	require.Empty(t, fixture.Enqueued(t, workloadUsers(env.client),
		target.Decode(testScaledObject("apps/v1", "Deployment", "resize"))))
	require.ElementsMatch(t, []string{"resize", "sibling"},
		fixture.Enqueued[client.Object](t, siblings(env.client), sibling))
}

func TestPoliciesOfOneFunctionOfAWorkerAreSiblingsInEveryNamespace(t *testing.T) {
	older, another, namesake := fixture.WorkerPolicy(), fixture.WorkerPolicy(), fixture.Policy()
	older.Namespace, older.Name = "other", "first"
	another.Namespace, another.Name, another.Spec.PulsarFunctionRef.Name = "other", "another", "crop"
	namesake.Name = "first"
	env := newTestEnv(t, fixture.WorkerPolicy(), another, namesake)
	require.ElementsMatch(t, []string{"first", fixture.WorkerPolicy().Name},
		fixture.Enqueued[client.Object](t, siblings(env.client), older))
	require.Equal(t, []string{"first"}, fixture.Enqueued[client.Object](t, siblings(env.client), namesake))
}

func TestACapabilityEnqueuesEveryPolicy(t *testing.T) {
	elsewhere := fixture.Policy()
	elsewhere.Namespace, elsewhere.Name = "other", "elsewhere"
	env := newTestEnv(t, fixture.Policy(), elsewhere)
	require.ElementsMatch(t, []string{fixture.Policy().Name, "elsewhere"},
		fixture.Enqueued[client.Object](t, everyPolicy(env.client), &v1alpha1.AutoscalingPolicy{}))
}

func TestOurOwnStatusWritesEnqueueNothing(t *testing.T) {
	before, after := fixture.Policy(), fixture.Policy()
	desired := int32(7)
	after.Status.DesiredReplicas, after.ResourceVersion = &desired, "2"
	update := event.UpdateEvent{ObjectOld: before, ObjectNew: after}
	require.False(t, policyChanged().Update(update))
	after.Generation++
	require.True(t, policyChanged().Update(update))
	after.Generation = before.Generation
	now := metav1.Now()
	after.DeletionTimestamp = &now
	require.True(t, policyChanged().Update(update), "deletion in the foreground")
	require.True(t, policyChanged().Create(event.CreateEvent{Object: before}))
	require.True(t, policyChanged().Delete(event.DeleteEvent{Object: before}))
}

func TestAnAutoscalersSyncsEnqueueNothing(t *testing.T) {
	tests := map[string]struct {
		change func(*autoscalingv2.HorizontalPodAutoscaler)
		wakes  bool
	}{
		"its metrics moved": {func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Status.DesiredReplicas = 9 }, false},
		"its spec changed":  {func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.MaxReplicas = 99 }, true},
		"a label changed": {
			func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Labels = map[string]string{"a": "b"} },
			true,
		},
		"its owner changed": {func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.OwnerReferences = []metav1.OwnerReference{{Name: "x"}}
		}, true},
		"it stopped scaling": {
			func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Status.Conditions = scalingInactive() },
			true,
		},
		"it scaled for once ": {
			func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Status.LastScaleTime = &metav1.Time{} },
			false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := otherAutoscaler("compute.functionmesh.io/v1alpha1", "Function", "resize")
			after := before.DeepCopy()
			test.change(after)
			require.Equal(t, test.wakes, autoscalerChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
		})
	}
}

func scalingInactive() []autoscalingv2.HorizontalPodAutoscalerCondition {
	return []autoscalingv2.HorizontalPodAutoscalerCondition{{
		Type:   autoscalingv2.ScalingActive,
		Status: corev1.ConditionFalse,
	}}
}

func TestAFunctionsStatusEnqueuesNothing(t *testing.T) {
	tests := map[string]struct {
		change func(*unstructured.Unstructured)
		wakes  bool
	}{
		"its status moved": {func(
			u *unstructured.Unstructured,
		) {
			u.Object["status"] = map[string]any{"replicas": int64(4)}
		}, false},
		"its spec changed": {func(u *unstructured.Unstructured) { u.SetGeneration(9) }, true},
		"an annotation changed": {func(
			u *unstructured.Unstructured,
		) {
			u.SetAnnotations(map[string]string{cluster.AnnotationManaged: "false"})
		}, true},
		"it joined a mesh": {func(u *unstructured.Unstructured) {
			u.SetOwnerReferences([]metav1.OwnerReference{{Kind: cluster.KindFunctionMesh, Name: "m"}})
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := fixture.Function(), fixture.Function()
			test.change(after)
			require.Equal(t, test.wakes,
				workloadChanged().Update(event.TypedUpdateEvent[*target.Cached]{
					ObjectOld: target.Decode(before), ObjectNew: target.Decode(after),
				}))
		})
	}
}
