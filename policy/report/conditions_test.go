// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

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
		"the strategy needs rates that Pulsar does not report": {
			func(_ testing.TB, o *plan.Observed) {
				o.Reading = &backlog.Reading{At: o.Now, PublishRate: backlog.Unknown(backlog.ErrNotReported)}
			},
			map[string]string{"Ready": "False/Unsupported", "BacklogKnown": "False/Unsupported"},
		},
		"the target is missing": {
			func(_ testing.TB, o *plan.Observed) {
				o.Target = nil
				o.Violation = plan.Check(o.Subject, o.Autoscalers)
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
		"mode is Recommend and Auto would conflict": {
			func(_ testing.TB, o *plan.Observed) {
				o.Policy.Spec.Mode, o.OlderPolicy = v1alpha1.ModeRecommend, "resize-old"
			},
			map[string]string{"Ready": "True/Recommending", "AutoscalerApplied": "True/OlderPolicy"},
		},
		"an old server drops the tolerance": {
			func(t testing.TB, o *plan.Observed) {
				failing(corev1.ConditionTrue, "ValidMetricFound", "")(t, o)
				o.Autoscaler.Spec.Behavior.ScaleUp.Tolerance = nil
			},
			map[string]string{"Ready": "True/Scaling", "AutoscalerApplied": "True/ToleranceUnsupported"},
		},
		"the autoscaler takes two syncs": {
			func(t testing.TB, o *plan.Observed) {
				failing(corev1.ConditionTrue, "ValidMetricFound", "")(t, o)
				o.Actuator.Lag = &metav1.Duration{Duration: 30 * time.Second}
			},
			map[string]string{"Ready": "True/Scaling", "AutoscalerApplied": "True/Applied"},
		},
		"the autoscaler takes longer": {
			func(t testing.TB, o *plan.Observed) {
				failing(corev1.ConditionTrue, "ValidMetricFound", "")(t, o)
				o.Actuator.Lag = &metav1.Duration{Duration: 31 * time.Second}
			},
			map[string]string{"Ready": "True/Scaling", "AutoscalerApplied": "True/ActuationSlow"},
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

func TestALaggingAutoscalerIsNamedWithTheFix(t *testing.T) {
	o := outcome(t, 3)
	saying(&o, corev1.ConditionTrue, "ValidMetricFound", "")
	o.Actuator.Lag = &metav1.Duration{Duration: 47 * time.Second}
	const fix = "raise --kube-api-qps and --concurrent-horizontal-pod-autoscaler-syncs of kube-controller-manager, " +
		"and lower its --horizontal-pod-autoscaler-sync-period if that is above 15s, see " +
		"docs/actuators.md#many-autoscalers"
	applied := func() *metav1.Condition {
		return meta.FindStatusCondition(conditionsOf(nil, o), v1alpha1.ConditionAutoscalerApplied)
	}
	require.Equal(t, "HorizontalPodAutoscaler "+plan.AutoscalerName("resize")+
		" is up to date; it takes up to 47s to set the decided replicas: "+fix+", or set actuator: Direct", applied().Message)

	o.Policy.Status.DesiredReplicas, o.Unset = new(int32(5)), plan.Unset{Since: noon().Add(-time.Minute), Replicas: 3}
	o.Actuator, o.Autoscaler = plan.Choose(o.Subject, o.Autoscalers, o.Unset), nil
	require.Regexp(t, "^the controller writes the number of replicas itself: HorizontalPodAutoscaler .* did not set the "+
		"decided replicas for 1m0s, so Auto chooses Direct until .*: "+fix+"$", applied().Message)
	require.Equal(t, v1alpha1.ReasonActuationSlow, applied().Reason)
}

func TestEveryReasonOfPackageBacklogHasAConditionReason(t *testing.T) {
	for _, err := range []error{
		backlog.ErrNotTracked, backlog.ErrNoData, backlog.ErrStale, backlog.ErrPartial, backlog.ErrTopicNotFound,
		backlog.ErrSubscriptionNotFound, backlog.ErrUnauthenticated, backlog.ErrForbidden, backlog.ErrUnreachable,
		backlog.ErrUnavailable, backlog.ErrProtocol, backlog.ErrUnsupported, backlog.ErrFunctionNotFound, backlog.ErrNoWorker,
	} {
		require.NotEqual(t, "Unknown", report.UnknownReason(fmt.Errorf("reading: %w", err)), err)
	}
	require.Equal(t, "Unknown", report.UnknownReason(errors.New("never seen")))
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
		"no change": {decide(noon().Add(10*time.Second), reading(100, 200), nil), 10 * time.Second, false},
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
		"five minutes passed":        {decide(noon().Add(5*time.Minute), reading(100, 200), nil), 5 * time.Minute, true},
		"another number of replicas": {decide(noon().Add(time.Second), reading(100, 900), nil), time.Second, true},
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

func TestATargetThatCannotBeScaledHasNoDesiredReplicas(t *testing.T) {
	w := world()
	desired := int32(7)
	before := v1alpha1.AutoscalingPolicyStatus{
		DesiredReplicas: &desired, Signals: &v1alpha1.Signals{}, Decision: &v1alpha1.Decision{},
		Capacity: &v1alpha1.Capacity{Observations: 3},
	}
	tests := map[string]struct {
		condition string
		kept      bool
	}{
		"no decision for a target in a mesh":                  {v1alpha1.ConditionTargetFound, false},
		"a conflicting autoscaler does not end the decisions": {v1alpha1.ConditionAutoscalerApplied, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w.Violation = &plan.Violation{Condition: test.condition, Reason: "Why", Message: "why"}
			after := statusOf(before, w, nil)
			require.Equal(t, test.kept, after.DesiredReplicas != nil)
			require.Equal(t, test.kept, after.Signals != nil)
			require.Equal(t, test.kept, after.Decision != nil)
			require.NotNil(t, after.Capacity, "the learned state stays")
		})
	}
}

func TestAMissingAutoscalerIsNotReportedAsApplied(t *testing.T) {
	w := world()
	w.Autoscaler = nil
	w.Unknown = backlog.ErrNoData
	applied := meta.FindStatusCondition(conditionsOf(nil, w), v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, metav1.ConditionUnknown, applied.Status)
	require.Equal(t, v1alpha1.ReasonPending, applied.Reason)
}

func TestATargetFrozenOutOfBoundsExplainsItsMissingAutoscaler(t *testing.T) {
	for name, test := range map[string]struct {
		current int32
		want    string
	}{"out of bounds": {80, "Unknown/Pending"}, "within": {3, "True/Applied"}} {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, test.current)
			o.Target.Frozen = &policy.Hold{Reason: policy.HoldRolloutPaused, Message: "a rollout is paused"}
			if plan.New(o, &policy.Decision{Replicas: test.current}).RemoveAutoscaler {
				o.Autoscaler = nil
			}
			status := statusOf(v1alpha1.AutoscalingPolicyStatus{}, o, nil)
			c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAutoscalerApplied)
			require.Equal(t, test.want, string(c.Status)+"/"+c.Reason)
			if test.current > 3 {
				require.Contains(t, c.Message, "a rollout is paused")
				require.Empty(t, status.HorizontalPodAutoscaler)
			}
		})
	}
}
