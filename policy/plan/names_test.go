// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// componentWorld is one in which Function resize of FunctionMesh etl is scaled.
func componentWorld() plan.Observed {
	w := world()
	w.Policy.Spec.ScaleTargetRef.Kind, w.Policy.Spec.ScaleTargetRef.Name = "FunctionMesh", "etl"
	w.Policy.Spec.ScaleTargetRef.Component = v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadFunction, Name: "resize"}
	w.Target.Ref, w.Target.Scaling = plan.MeshChild(w.Policy.Spec.ScaleTargetRef), plan.ByMesh
	w.Target.Least = 1
	return w
}

func TestAChildOfAMeshHasTheNameOfFunctionMesh(t *testing.T) {
	w := componentWorld()
	require.Equal(t,
		v1alpha1.ScaleTargetRef{
			APIVersion: w.Policy.Spec.ScaleTargetRef.APIVersion, Kind: "Function",
			Name: "etl-resize",
		}, w.Target.Ref)
	require.Equal(t, "sources", plan.MeshList(v1alpha1.WorkloadSource))
}

func TestAnEntryAtOneIsDecidedUnlessTheControllerRaisedIt(t *testing.T) {
	tests := map[string]struct {
		change func(*plan.Observed)
		want   int32
	}{
		"raised before a change of the leader": {func(*plan.Observed) {}, 0},
		"woken before a change of the leader, and not reported": {
			func(o *plan.Observed) { o.Policy.Status.Conditions = nil }, 1,
		},
		"in mode Recommend": {
			func(o *plan.Observed) { o.Policy.Spec.Mode = v1alpha1.ModeRecommend }, 1,
		},
		"beside another autoscaler": {func(o *plan.Observed) { o.Violation = &plan.Violation{} }, 1},
		"the decided number":        {func(o *plan.Observed) { o.Policy.Status.DesiredReplicas = new(int32(1)) }, 1},
		"another number":            {func(o *plan.Observed) { o.Target.Replicas = new(int32(2)) }, 2},
		"a Function of its own":     {func(o *plan.Observed) { o.Target.Least = 0 }, 1},
		"raised to its minReplicas": {func(o *plan.Observed) { o.Target.Replicas, o.Target.Least = new(int32(2)), 2 }, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := componentWorld()
			o.Target.Replicas, o.Policy.Spec.MinReplicas = new(int32(1)), new(int32(0))
			o.Policy.Status.DesiredReplicas = new(int32(0))
			o.Policy.Status.Conditions = []metav1.Condition{{
				Type: v1alpha1.ConditionTargetFound, Reason: v1alpha1.ReasonChildMissing,
			}}
			test.change(&o)
			o.Policy.Status.SpecReplicas = o.Target.Replicas
			o.History = o.History.Seen(o)
			require.Equal(t, test.want, o.CurrentReplicas())
		})
	}
}

func TestCheckNamesTheEntryOfAMesh(t *testing.T) {
	tests := map[string]struct {
		change  func(*plan.Observed)
		message string
	}{
		"with an autoscaler of Function Mesh": {
			func(w *plan.Observed) { w.Target.MaxReplicas = new(int32(5)) },
			"Function resize of FunctionMesh etl sets maxReplicas, so Function Mesh runs a HorizontalPodAutoscaler of its own " +
				"for it: " +
				"remove maxReplicas, then delete HorizontalPodAutoscaler etl-resize-function, or set conflictPolicy: TakeOver",
		},
		"of an unmanaged mesh": {
			func(w *plan.Observed) { w.Target.Unmanaged = "FunctionMesh etl" },
			"FunctionMesh etl has the annotation compute.functionmesh.io/managed: \"false\", so scaling it has no effect: " +
				"remove the annotation",
		},
		"when the child is named directly": {
			func(w *plan.Observed) {
				w.Policy.Spec.ScaleTargetRef, w.Target.Scaling, w.Target.MeshOwner = w.Target.Ref, plan.BySubresource, "etl"
			},
			"Function etl-resize belongs to FunctionMesh etl, which resets its replicas at every change: replace this " +
				"policy with one with " +
				"scaleTargetRef {apiVersion: compute.functionmesh.io/v1alpha1, kind: FunctionMesh, name: etl, component: {kind: " +
				"Function, name: resize}}",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := componentWorld()
			test.change(&w)
			v := plan.Check(w.Subject, w.Autoscalers)
			require.NotNil(t, v)
			require.Equal(t, test.message, v.Message)
		})
	}
}
