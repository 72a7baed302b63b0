// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// world is an observation without a problem, before an autoscaler was applied.
func world() plan.Observed {
	replicas := int32(3)
	p := &v1alpha1.AutoscalingPolicy{Spec: spec()}
	p.Name, p.Namespace, p.UID, p.Generation = "resize", "media", "uid-1", 4
	return plan.Observed{
		Now:      noon(),
		Policy:   p,
		Measured: plan.Measured{FreshFor: 30 * time.Second},
		Target: &plan.Target{
			Ref: p.Spec.ScaleTargetRef, Replicas: &replicas,
			Subscription: backlog.NewSubscription(backlog.Cluster{AdminURL: "http://pulsar:8080"}, "public/default/resize",
				"in"),
		},
	}
}

// applied is our autoscaler as an API server would keep it.
func applied(t testing.TB, w plan.Observed) *autoscalingv2.HorizontalPodAutoscaler {
	t.Helper()
	text, err := json.Marshal(plan.HorizontalPodAutoscaler(w.Policy, w.Target))
	require.NoError(t, err)
	var live autoscalingv2.HorizontalPodAutoscaler
	require.NoError(t, json.Unmarshal(text, &live))
	return &live
}

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
				w.Target, w.Unsupported = nil, "kind Deployment is not supported: use Function"
			},
			v1alpha1.ConditionTargetFound, "TargetKindUnsupported", "kind Deployment is not supported: use Function",
		},
		"the target does not exist": {
			func(w *plan.Observed) { w.Target = nil },
			v1alpha1.ConditionTargetFound, "TargetNotFound",
			"Function resize does not exist in namespace media: create it or correct spec.scaleTargetRef",
		},
		"its inputs are unknown": {
			func(w *plan.Observed) { w.Target.Invalid = "spec.input names no topics" },
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
			func(w *plan.Observed) { w.Target.Unmanaged = true },
			v1alpha1.ConditionTargetFound, "Unmanaged",
			`Function resize has the annotation compute.functionmesh.io/managed: "false", so scaling it has no effect: remove the annotation`,
		},
		"another policy was first": {
			func(w *plan.Observed) { w.OlderPolicy = "resize-old" },
			v1alpha1.ConditionAutoscalerApplied, "OlderPolicy",
			"AutoscalingPolicy resize-old is older and scales the same target: delete one of the two",
		},
		"function mesh scales it": {
			func(w *plan.Observed) { w.Target.OwnAutoscaler = true },
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
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := world()
			test.change(&w)
			violation := plan.Check(w)
			if test.reason == "" {
				require.Nil(t, violation)
				return
			}
			require.Equal(t, &plan.Violation{Condition: test.condition, Reason: test.reason, Message: test.message}, violation)
		})
	}
}

func TestTheAutoscalerSetsTheDecidedNumber(t *testing.T) {
	w := world()
	live := applied(t, w)
	require.Equal(t, "1", live.Spec.Metrics[0].Object.Target.AverageValue.String())
	require.Equal(t, plan.MetricDesiredReplicas, live.Spec.Metrics[0].Object.Metric.Name)
	require.Equal(t, "AutoscalingPolicy", live.Spec.Metrics[0].Object.DescribedObject.Kind)
	require.Equal(t, int32(1), *live.Spec.MinReplicas)
	require.Equal(t, int32(50), live.Spec.MaxReplicas)
	for _, rules := range []*autoscalingv2.HPAScalingRules{live.Spec.Behavior.ScaleUp, live.Spec.Behavior.ScaleDown} {
		require.Zero(t, *rules.StabilizationWindowSeconds, "the decision is stabilised already")
		require.True(t, rules.Tolerance.IsZero(), "one more or one fewer of twenty must not be swallowed")
	}
	w.Autoscaler = live
	require.Nil(t, plan.Check(w), "an applied object is ours")
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
			current, err := plan.AutoscalerIsCurrent(live, plan.HorizontalPodAutoscaler(w.Policy, w.Target))
			require.NoError(t, err)
			require.Equal(t, test.want, current)
		})
	}
	current, err := plan.AutoscalerIsCurrent(nil, plan.HorizontalPodAutoscaler(world().Policy, world().Target))
	require.NoError(t, err)
	require.False(t, current)
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

func TestConditions(t *testing.T) {
	failing := func(status corev1.ConditionStatus, reason, message string) func(testing.TB, *plan.Observed) {
		return func(t testing.TB, o *plan.Observed) {
			o.Autoscaler = applied(t, *o)
			o.Autoscaler.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
				{Type: autoscalingv2.ScalingActive, Status: status, Reason: reason, Message: message},
			}
		}
	}
	tests := map[string]struct {
		prepare func(testing.TB, *plan.Observed)
		want    map[string]string // type: status/reason
	}{
		"the target follows": {
			failing(corev1.ConditionTrue, "ValidMetricFound", "the HPA was able to compute"),
			map[string]string{
				"Ready": "True/Scaling", "TargetFound": "True/Found", "BacklogKnown": "True/Measured",
				"AutoscalerApplied": "True/Applied", "ScalingActive": "True/ValidMetricFound",
			},
		},
		"the autoscaler has not run yet": {
			func(t testing.TB, o *plan.Observed) { o.Autoscaler = applied(t, *o) },
			map[string]string{"Ready": "Unknown/Pending", "ScalingActive": "Unknown/Pending"},
		},
		"the first answer is under way": {
			func(_ testing.TB, o *plan.Observed) { o.Unknown = fmt.Errorf("%w: in", backlog.ErrNoData) },
			map[string]string{"Ready": "Unknown/NoDataYet", "BacklogKnown": "Unknown/NoDataYet"},
		},
		"pulsar does not answer": {
			func(t testing.TB, o *plan.Observed) {
				failing(corev1.ConditionFalse, "FailedGetObjectMetric", "unable to get metric")(t, o)
				o.Unknown = fmt.Errorf("%w: %w: connection refused", backlog.ErrStale, backlog.ErrUnreachable)
			},
			map[string]string{
				"Ready": "False/Stale", "BacklogKnown": "False/Stale",
				"ScalingActive": "False/FailedGetObjectMetric",
			},
		},
		"the target is missing": {
			func(_ testing.TB, o *plan.Observed) {
				o.Target = nil
				o.Violation = plan.Check(*o)
			},
			map[string]string{
				"Ready": "False/TargetNotFound", "TargetFound": "False/TargetNotFound",
				"BacklogKnown": "Unknown/NotChecked", "AutoscalerApplied": "Unknown/NotChecked", "ScalingActive": "",
			},
		},
		"mode is Recommend": {
			func(_ testing.TB, o *plan.Observed) { o.Policy.Spec.Mode = v1alpha1.ModeRecommend },
			map[string]string{"Ready": "True/Recommending", "AutoscalerApplied": "True/RecommendOnly", "ScalingActive": ""},
		},
		"an old server drops the tolerance": {
			func(t testing.TB, o *plan.Observed) {
				failing(corev1.ConditionTrue, "ValidMetricFound", "")(t, o)
				o.Autoscaler.Spec.Behavior.ScaleUp.Tolerance = nil
			},
			map[string]string{"Ready": "True/Scaling", "AutoscalerApplied": "True/ToleranceUnsupported"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			outcome := world()
			test.prepare(t, &outcome)
			conditions := conditionsOf(nil, outcome)
			for conditionType, want := range test.want {
				got := ""
				if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
					got = string(c.Status) + "/" + c.Reason
					require.Equal(t, int64(4), c.ObservedGeneration)
					require.Equal(t, noon(), c.LastTransitionTime.Time)
				}
				require.Equal(t, want, got, conditionType)
			}
			later := outcome
			later.Now = noon().Add(50 * time.Second)
			require.Equal(t, conditions, conditionsOf(conditions, later), "an unchanged condition keeps its transition time")
		})
	}
}

func TestEveryReasonOfPackageBacklogHasAConditionReason(t *testing.T) {
	for _, err := range []error{
		backlog.ErrNotTracked, backlog.ErrNoData, backlog.ErrStale, backlog.ErrPartial, backlog.ErrTopicNotFound,
		backlog.ErrSubscriptionNotFound, backlog.ErrUnauthenticated, backlog.ErrForbidden, backlog.ErrUnreachable,
		backlog.ErrUnavailable, backlog.ErrProtocol, backlog.ErrUnsupported, backlog.ErrFunctionNotFound, backlog.ErrNoWorker,
	} {
		require.NotEqual(t, "Unknown", plan.UnknownReason(fmt.Errorf("reading: %w", err)), err)
	}
	require.Equal(t, "Unknown", plan.UnknownReason(errors.New("never seen")))
}

func TestDiscountedMessagesAreInTheStatus(t *testing.T) {
	in := input(3, reading(900, 200))
	decision, state := policy.Decide(in, policy.State{
		Capacity: learned(100), Arrivals: arrivals(200), Floor: policy.Floor{Messages: 500},
	})
	after := statusOf(v1alpha1.AutoscalingPolicyStatus{}, world(),
		&decided{Decision: decision, State: state, Reading: in.Reading})
	require.Equal(t, int64(500), *after.Signals.DiscountedMessages)
}

func TestStatusIsWrittenWhenADecisionChangesAndRarelyOtherwise(t *testing.T) {
	outcome := world()
	var first v1alpha1.AutoscalingPolicyStatus
	decide := func(at time.Time, r backlog.Reading, unknown error) v1alpha1.AutoscalingPolicyStatus {
		in := input(3, r)
		in.Now, in.Unknown, in.Reading.At = at, unknown, at
		decision, state := policy.Decide(in, policy.State{Capacity: learned(100), Arrivals: arrivals(200)})
		o := outcome
		o.Now, o.Unknown = at, unknown
		return statusOf(first, o, &decided{Decision: decision, State: state, Reading: in.Reading})
	}
	first = decide(noon(), reading(100, 200), nil)
	require.Equal(t, int32(3), *first.DesiredReplicas)
	require.Equal(t, int32(3), *first.SpecReplicas)
	require.Equal(t, int64(100), *first.Signals.ReadyMessages)
	require.Equal(t, "1s", first.Signals.Wait.Duration.String())
	require.Nil(t, first.Signals.DiscountedMessages, "all count as work")
	require.Equal(t, "100", first.Capacity.MessagesPerSecond.String())

	tests := map[string]struct {
		after v1alpha1.AutoscalingPolicyStatus
		at    time.Duration
		want  bool
	}{
		"no change": {
			decide(noon().Add(10*time.Second), reading(100, 200), nil),
			10 * time.Second, false,
		},
		"the backlog moved a moment later": {
			decide(noon().Add(10*time.Second), reading(900, 200), nil),
			10 * time.Second, false,
		},
		"the backlog moved by more than a tenth": {
			decide(noon().Add(time.Minute), reading(900, 200), nil),
			time.Minute, true,
		},
		"the backlog moved by less than a tenth": {
			decide(noon().Add(time.Minute), reading(105, 200), nil),
			time.Minute, false,
		},
		"five minutes passed": {
			decide(noon().Add(5*time.Minute), reading(100, 200), nil),
			5 * time.Minute, true,
		},
		"another number of replicas": {
			decide(noon().Add(time.Second), reading(100, 900), nil), time.Second,
			true,
		},
		"the broker is down": {decide(noon().Add(time.Second), backlog.Reading{},
			backlog.ErrUnreachable), time.Second, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, statusDue(first, test.after, noon().Add(test.at)))
		})
	}
}

func TestUnknownValuesKeepTheLastDecision(t *testing.T) {
	outcome := world()
	decision, state := policy.Decide(input(3, reading(100, 500)), policy.State{Capacity: learned(100)})
	before := statusOf(v1alpha1.AutoscalingPolicyStatus{}, outcome,
		&decided{Decision: decision, State: state, Reading: reading(100, 500)})

	outcome.Unknown = fmt.Errorf("%w: connection refused", backlog.ErrUnreachable)
	in := input(3, backlog.Reading{})
	in.Unknown = outcome.Unknown
	decision, state = policy.Decide(in, state)
	after := statusOf(before, outcome, &decided{Decision: decision, State: state})
	require.Equal(t, before.DesiredReplicas, after.DesiredReplicas)
	require.Equal(t, before.Signals, after.Signals)
	require.Equal(t, policy.HoldUnknown, after.Decision.Hold.Reason)
	require.Equal(t, metav1.ConditionFalse, meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady).Status)
}
