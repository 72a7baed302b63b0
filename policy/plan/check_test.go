// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
)

func TestCheckNamesTheFirstFix(t *testing.T) {
	tests := map[string]struct {
		change    func(*plan.Observed)
		condition string
		reason    string
		message   string
	}{
		"all is well": {change: func(*plan.Observed) {}},
		"the kind cannot be scaled": {
			func(w *plan.Observed) {
				w.Target = nil
				w.Unfit = plan.TargetProblem(v1alpha1.ReasonTargetKindUnsupported, "kind Deployment is not supported: use Function")
			},
			v1alpha1.ConditionTargetFound, "TargetKindUnsupported", "kind Deployment is not supported: use Function",
		},
		"the target does not exist": {
			func(w *plan.Observed) { w.Target = nil },
			v1alpha1.ConditionTargetFound, "TargetNotFound",
			"Function resize does not exist in namespace media: create it or correct spec.scaleTargetRef",
		},
		"its inputs are unknown": {
			func(w *plan.Observed) {
				w.Unfit = plan.TargetProblem(v1alpha1.ReasonTargetInvalid, "spec.input names no topics")
			},
			v1alpha1.ConditionTargetFound, "TargetInvalid", "spec.input names no topics",
		},
		"it has no replicas field": {
			func(w *plan.Observed) { w.Target.Replicas = nil },
			v1alpha1.ConditionTargetFound, "ReplicasUnset",
			"Function resize has no spec.replicas, which scaling starts from: set it to 1",
		},
		"a mesh sets its replicas back": {
			func(w *plan.Observed) { w.Target.MeshOwner = "pipeline" },
			v1alpha1.ConditionTargetFound, "OwnedByFunctionMesh",
			"Function resize belongs to FunctionMesh pipeline, which resets its replicas at every change: " +
				"replace this policy with one with scaleTargetRef {apiVersion: compute.functionmesh.io/v1alpha1, kind: " +
				"FunctionMesh, name: pipeline, component: {kind: Function, name: resize}}",
		},
		"the operator ignores it": {
			func(w *plan.Observed) { w.Target.Unmanaged = "Function resize" },
			v1alpha1.ConditionTargetFound, "Unmanaged",
			`Function resize has the annotation compute.functionmesh.io/managed: "false", so scaling it has no effect: remove the annotation`,
		},
		"a schedule cannot be evaluated": {
			func(w *plan.Observed) { w.BadSchedule = errors.New("schedule day: end is never: correct it") },
			v1alpha1.ConditionAutoscalerApplied, "ScheduleInvalid", "schedule day: end is never: correct it",
		},
		"another policy was first": {
			func(w *plan.Observed) { w.OlderPolicy = "resize-old" },
			v1alpha1.ConditionAutoscalerApplied, "OlderPolicy",
			"AutoscalingPolicy resize-old is older and scales the same target: delete one of the two",
		},
		"another policy restores what it took over": {
			func(w *plan.Observed) { w.Restoring = "resize-old" },
			v1alpha1.ConditionAutoscalerApplied, "Restoring",
			"AutoscalingPolicy resize-old restores what it took over on the same target: wait for it, up to a minute",
		},
		"another policy restores beside our autoscaler, which continues": {
			change: func(w *plan.Observed) { w.Restoring, w.Autoscaler = "resize-old", applied(t, *w) },
		},
		"function mesh scales it": {
			func(w *plan.Observed) { w.Target.MaxReplicas = new(int32(5)) },
			v1alpha1.ConditionAutoscalerApplied, "FunctionHasOwnAutoscaler",
			"Function resize sets spec.maxReplicas, so Function Mesh runs a HorizontalPodAutoscaler of its own for it: " +
				"remove spec.maxReplicas, then delete HorizontalPodAutoscaler resize-function, or set conflictPolicy: TakeOver",
		},
		"another autoscaler scales the StatefulSet behind it": {
			func(w *plan.Observed) {
				w.Conflicting = []plan.ConflictingAutoscaler{{
					Kind: "HorizontalPodAutoscaler", Name: "by-hand", TargetKind: "StatefulSet",
					TargetName: "resize-function",
				}}
			},
			v1alpha1.ConditionAutoscalerApplied, "ConflictingAutoscaler",
			"HorizontalPodAutoscaler by-hand scales StatefulSet resize-function, which belongs to Function resize: Function " +
				"Mesh resets its replicas " +
				"each time, so pods are DELETED AND RECREATED AT EVERY SYNC: delete it, or set conflictPolicy: TakeOver",
		},
		"another object has our name": {
			func(w *plan.Observed) {
				w.Autoscaler = &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: plan.AutoscalerName(
					"resize")}}
			},
			v1alpha1.ConditionAutoscalerApplied, "AutoscalerNameTaken",
			"HorizontalPodAutoscaler " + plan.AutoscalerName("resize") +
				" exists and is not this policy's: rename or delete it",
		},
		"the autoscaler of a deleted policy of this name is still there": {
			func(w *plan.Observed) {
				w.Autoscaler = applied(t, *w)
				w.Policy.UID = "recreated"
			},
			v1alpha1.ConditionAutoscalerApplied, "Pending",
			"waiting until Kubernetes deletes HorizontalPodAutoscaler " + plan.AutoscalerName("resize") +
				" of the deleted policy of this name",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := world()
			test.change(&w)
			problem := plan.Check(w.Subject, w.Autoscalers)
			if test.reason == "" {
				require.Nil(t, problem)
				return
			}
			require.Equal(t, &plan.Violation{Condition: test.condition, Reason: test.reason, Message: test.message}, problem)
		})
	}
}

func TestTheAutoscalerSetsTheDecidedNumber(t *testing.T) {
	w := world()
	live := applied(t, w)
	require.Equal(t, "1", live.Spec.Metrics[0].Object.Target.AverageValue.String())
	require.Equal(t, served.MetricDesiredReplicas, live.Spec.Metrics[0].Object.Metric.Name)
	require.Equal(t, "AutoscalingPolicy", live.Spec.Metrics[0].Object.DescribedObject.Kind)
	require.Equal(t, int32(1), *live.Spec.MinReplicas)
	require.Equal(t, int32(50), live.Spec.MaxReplicas)
	for _, rules := range []*autoscalingv2.HPAScalingRules{live.Spec.Behavior.ScaleUp, live.Spec.Behavior.ScaleDown} {
		require.Zero(t, *rules.StabilizationWindowSeconds, "the decision is stabilised already")
		require.True(t, rules.Tolerance.IsZero(), "one more or one fewer of twenty must not be swallowed")
	}
	w.Autoscaler = live
	require.Nil(t, plan.Check(w.Subject, w.Autoscalers), "an applied object is ours")
}

func TestAutoscalerIsCurrent(t *testing.T) {
	tests := map[string]struct {
		change func(*autoscalingv2.HorizontalPodAutoscaler)
		want   bool
	}{
		"as applied":          {func(*autoscalingv2.HorizontalPodAutoscaler) {}, true},
		"another maxReplicas": {func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.MaxReplicas = 7 }, false},
		"a label was removed": {func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Labels = nil }, false},
		"another writer's label": {func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Labels["team"] = "media"
		}, true},
		"a window was added": {func(h *autoscalingv2.HorizontalPodAutoscaler) {
			*h.Spec.Behavior.ScaleDown.StabilizationWindowSeconds = 300
		}, false},
		"a server before 1.35 dropped the tolerance": {func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.Behavior.ScaleUp.Tolerance, h.Spec.Behavior.ScaleDown.Tolerance = nil, nil
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := world()
			live := applied(t, w)
			test.change(live)
			wanted := plan.HorizontalPodAutoscaler(w.Policy, w.Target)
			require.Equal(t, test.want, plan.AutoscalerIsCurrent(live, wanted))
			require.Equal(t, wanted, plan.HorizontalPodAutoscaler(w.Policy, w.Target), "it is applied as it was")
		})
	}
	require.False(t, plan.AutoscalerIsCurrent(nil, plan.HorizontalPodAutoscaler(world().Policy, world().Target)))
}

func TestAutoscalerNamesAreValidAndDistinct(t *testing.T) {
	long := strings.Repeat("a-very-long-name.", 14)
	seen := map[string]string{}
	for _, name := range []string{"a", "resize", long + "x", long + "y", strings.Repeat("b", 253)} {
		got := plan.AutoscalerName(name)
		require.Empty(t, validation.IsDNS1123Subdomain(got), got)
		require.LessOrEqual(t, len(got), 63)
		require.NotContains(t, seen, got, "two policies would share an autoscaler")
		seen[got] = name
	}
}

func TestRecommendIgnoresOtherAutoscalers(t *testing.T) {
	w := world()
	w.Target.MaxReplicas = new(int32(5))
	w.OlderPolicy = "first"
	w.Conflicting = []plan.ConflictingAutoscaler{{
		Kind: "HorizontalPodAutoscaler", Name: "theirs", TargetKind: "Function",
		TargetName: "resize",
	}}
	require.NotNil(t, plan.Check(w.Subject, w.Autoscalers))
	require.Nil(t, plan.CheckForAuto(w.Subject, w.Autoscalers), "Check has it")
	w.Policy.Spec.Mode = v1alpha1.ModeRecommend
	require.Nil(t, plan.Check(w.Subject, w.Autoscalers))
	require.Equal(t, "OlderPolicy", plan.CheckForAuto(w.Subject, w.Autoscalers).Reason)
	w.OlderPolicy = ""
	require.Equal(t, "FunctionHasOwnAutoscaler", plan.CheckForAuto(w.Subject, w.Autoscalers).Reason)
	w.Policy.Spec.ConflictPolicy = v1alpha1.ConflictTakeOver
	require.Nil(t, plan.CheckForAuto(w.Subject, w.Autoscalers), "the policy would suspend it")
	w.Target.MeshOwner = "photos"
	require.NotNil(t, plan.Check(w.Subject, w.Autoscalers), "problems of the target itself count in every mode")
}
