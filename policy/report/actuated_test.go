// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

func TestConditionsOfZeroDirectAndPaused(t *testing.T) {
	mode := func(m v1alpha1.Mode) func(*plan.Observed) {
		return func(o *plan.Observed) { o.Policy.Spec.Mode = m }
	}
	tests := map[string]struct {
		current              int32
		given                []func(*plan.Observed)
		ready, active, apply string
		message              string
	}{
		"Direct": {
			3,
			[]func(*plan.Observed){byDirect},
			"True/Scaling", "True/Direct", "True/Direct",
			"the target follows the decisions",
		},
		"at zero with Direct": {
			0,
			[]func(*plan.Observed){byDirect, mayBeZero},
			"True/ScaledToZero", "True/ScaledToZero", "True/Direct",
			"scaled to zero: a backlog wakes replicas",
		},
		"at zero with a disabled autoscaler": {
			0,
			[]func(*plan.Observed){mayBeZero, disabled},
			"True/ScaledToZero", "True/ScaledToZero", "True/Applied",
			"scaled to zero: a backlog wakes replicas",
		},
		"at zero before the autoscaler looked": {
			0, []func(*plan.Observed){mayBeZero}, "True/ScaledToZero", "True/ScaledToZero", "True/Applied", "scaled to zero",
		},
		"at zero before there is an autoscaler": {
			0,
			[]func(*plan.Observed){mayBeZero, func(o *plan.Observed) { o.Autoscaler = nil }},
			"Unknown/Pending", "True/ScaledToZero", "Unknown/Pending",
			"the HorizontalPodAutoscaler is about to be created",
		},
		"back from zero before the autoscaler looked": {
			4, []func(*plan.Observed){
				mayBeZero,
				disabled,
			}, "True/Scaling", "True/Scaling", "True/Applied", "the target follows the decisions",
		},
		"on the way back because minReplicas was raised": {
			0, []func(*plan.Observed){
				disabled,
				atZero,
			}, "True/ScaledToZero", "True/ScaledToZero", "True/Applied", "scaled to zero",
		},
		"switched off by hand": {
			0,
			[]func(*plan.Observed){disabled},
			"False/SwitchedOff", "False/SwitchedOff", "True/Applied",
			"replicas of Function resize are 0 although minReplicas is 1, which switches scaling off: set them to 1 or more, " +
				"or minReplicas to 0",
		},
		"switched off by hand with Direct": {
			0,
			[]func(*plan.Observed){byDirect},
			"False/SwitchedOff", "False/SwitchedOff", "True/Direct",
			"switches scaling off",
		},
		"the autoscaler at work": {
			3,
			[]func(*plan.Observed){func(o *plan.Observed) {
				saying(o, corev1.ConditionTrue, "ValidMetricFound",
					"the HPA was able to")
			}},
			"True/Scaling", "True/ValidMetricFound", "True/Applied", "the target follows the decisions",
		},
		"Paused": {
			3,
			[]func(*plan.Observed){mode(v1alpha1.ModePaused)},
			"True/Paused", "", "True/Paused",
			"mode is Paused: the backlog is measured, and nothing is decided or changed",
		},
		"Recommend at zero": {
			0, []func(*plan.Observed){
				mode(v1alpha1.ModeRecommend),
				mayBeZero,
			}, "True/Recommending", "", "True/RecommendOnly", "shown and not carried out",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, test.current)
			for _, change := range test.given {
				change(&o)
			}
			conditions := conditionsOf(o.Policy.Status.Conditions, o)
			for conditionType, want := range map[string]string{
				v1alpha1.ConditionReady: test.ready, v1alpha1.ConditionScalingActive: test.active,
				v1alpha1.ConditionAutoscalerApplied: test.apply,
			} {
				got := ""
				if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
					got = string(c.Status) + "/" + c.Reason
				}
				require.Equal(t, want, got, conditionType)
			}
			require.Contains(t, meta.FindStatusCondition(conditions, v1alpha1.ConditionReady).Message, test.message)
			later := o
			later.Now = noon().Add(time.Hour)
			require.Equal(t, conditions, conditionsOf(conditions, later), "an unchanged status is not written again")
		})
	}
}

func TestAPausedPolicyShowsTheBacklogAndNoDecision(t *testing.T) {
	before := written(t, learnedState(t))
	o := outcome(t, 3)
	o.Policy.Spec.Mode = v1alpha1.ModePaused
	measured := func(messages float64) *decided {
		in := input(3, reading(messages, 500))
		in.Now, in.Reading.At, in.Frozen = o.Now, o.Now, plan.Frozen(o)
		decision, state := policy.Decide(in, policy.State{Capacity: learned(100), Arrivals: arrivals(500)})
		require.Equal(t, int32(3), decision.Replicas, "the replicas stay although 5 are too few")
		return &decided{Decision: decision, State: state, Reading: in.Reading}
	}
	first := measured(5000)
	after := statusOf(before, o, first)
	require.Nil(t, after.DesiredReplicas)
	require.Nil(t, after.Decision)
	require.Nil(t, after.Actuator)
	require.Empty(t, after.HorizontalPodAutoscaler)
	require.Equal(t, int64(5000), *after.Signals.ReadyMessages)
	require.NotNil(t, after.Signals.Wait)
	require.NotNil(t, after.Signals.PublishRate)
	require.NotNil(t, after.Capacity)
	require.NotEmpty(t, after.WorkingCheckpoint)
	require.Equal(t, int32(3), *after.SpecReplicas)
	for name, want := range map[string]string{
		v1alpha1.ConditionReady: "True/Paused", v1alpha1.ConditionBacklogKnown: "True/Measured",
		v1alpha1.ConditionTargetFound: "True/Found", v1alpha1.ConditionScalingLimited: "Unknown/NotChecked",
	} {
		c := meta.FindStatusCondition(after.Conditions, name)
		require.Equal(t, want, string(c.Status)+"/"+c.Reason, name)
	}
	require.True(t, statusDue(before, after, noon()))

	o.Now = noon().Add(time.Hour)
	require.False(t, statusDue(after, statusOf(after, o, first), o.Now), "nothing is written while nothing is measured")
	require.True(t, statusDue(after, statusOf(after, o, measured(9000)), o.Now), "the backlog is kept up to date")
}

func TestAPausedPolicyWithLateMessagesSaysThatNothingScales(t *testing.T) {
	o := outcome(t, 3)
	o.Policy.Spec.Mode = v1alpha1.ModePaused
	o.Policy.Status.Conditions = append(o.Policy.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionObjectiveMet, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonCatchingUp,
	})
	in := input(3, reading(100_000, 500))
	in.Frozen = plan.Frozen(o)
	decision, state := policy.Decide(in, policy.State{Capacity: learned(100), Arrivals: arrivals(500)})
	status := statusOf(o.Policy.Status, o, &decided{Decision: decision, State: state, Reading: in.Reading})
	met := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionObjectiveMet)
	require.Equal(t, "False/Paused", string(met.Status)+"/"+met.Reason)
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	require.Equal(t, "True/Paused", string(ready.Status)+"/"+ready.Reason)
	require.Contains(t, ready.Message, "; messages wait longer than the latency objective (Paused)")
}

func TestATargetThatWasSwitchedOffHasNoDesiredReplicas(t *testing.T) {
	o := outcome(t, 0)
	disabled(&o)
	in := input(0, reading(5000, 500))
	in.Frozen = plan.Frozen(o)
	decision, state := policy.Decide(in, policy.State{Capacity: learned(100), Arrivals: arrivals(500)})
	require.Zero(t, decision.Replicas)
	status := statusOf(v1alpha1.AutoscalingPolicyStatus{DesiredReplicas: new(int32(3))}, o,
		&decided{Decision: decision, State: state, Reading: in.Reading})
	require.Nil(t, status.DesiredReplicas,
		"an autoscaler that finds replicas again keeps them until there is a new number")
	require.Equal(t, policy.HoldSwitchedOff, status.Decision.Hold.Reason)
	require.NotNil(t, status.Signals)
}

func TestAFailedWriteIsReported(t *testing.T) {
	o := outcome(t, 3)
	byDirect(&o)
	result := plan.Unwritten(o, plan.Actions{})
	result.ScaleFailed = errors.New("scaling Function resize to 7: forbidden")
	status := report.Status(o, report.History{}, nil, policy.State{}, result)
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/ScaleFailed", string(ready.Status)+"/"+ready.Reason)
	require.Equal(t, "retrying after an error: scaling Function resize to 7: forbidden", ready.Message)
}
