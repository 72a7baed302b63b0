// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

func TestATargetThatWasRecreatedIsNoticedByItsUID(t *testing.T) {
	o := outcome(t, 3)
	o.Target.UID = "a"
	require.False(t, plan.Input(o).Recreated, "the first one")
	r := reading(0, 0)
	o.Reading = &r
	o.History = o.History.After(o, plan.Actions{}, plan.Result{})
	for uid, want := range map[string]bool{"a": false, "": false, "b": true} {
		o.Target.UID = uid
		require.Equal(t, want, plan.Input(o).Recreated, "UID %q", uid)
	}
}

func TestARefusedApplyIsRetriedOnceInAWhile(t *testing.T) {
	refused := &plan.Violation{Condition: v1alpha1.ConditionAutoscalerApplied, Reason: v1alpha1.ReasonRefused}
	decision := &policy.Decision{Replicas: 7}
	for name, test := range map[string]struct {
		change func(*plan.Observed)
		want   bool
	}{
		"at once":                            {func(*plan.Observed) {}, false},
		"a minute later":                     {func(o *plan.Observed) { o.Now = o.Now.Add(time.Minute) }, true},
		"when the policy changed":            {func(o *plan.Observed) { o.Policy.Generation++ }, true},
		"when our autoscaler does not exist": {func(o *plan.Observed) { o.Autoscaler = nil }, true},
		"when another actuator applies":      {byKEDA(t), true},
	} {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, 3)
			o.Autoscaler.UID = "uid-hpa"
			actions := plan.New(o, decision)
			require.NotNil(t, actions.Autoscaler)
			o.History = o.History.After(o, actions, plan.Result{Autoscaler: o.Autoscaler, Violation: refused, Refused: true})
			test.change(&o)
			actions = plan.New(o, decision)
			require.Equal(t, test.want, actions.Autoscaler != nil || actions.ScaledObject != nil)
			if !test.want {
				require.Equal(t, refused, actions.Violation, "the status keeps the reason")
				require.Nil(t, actions.Replicas)
			}
		})
	}
}

func TestARefusedApplyWritesNoReplicas(t *testing.T) {
	for name, change := range map[string]func(*plan.Observed){
		"of an HPA":                     func(o *plan.Observed) { o.Autoscaler = nil },
		"of a ScaledObject":             func(o *plan.Observed) { byKEDA(t)(o); o.ScaledObject, o.KEDAAutoscaler = nil, nil },
		"of a ScaledObject that exists": func(o *plan.Observed) { byKEDA(t)(o); o.ScaledObject.Labels = nil },
	} {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, 0)
			mayBeZero(&o)
			change(&o)
			o.History = o.History.Seen(o)
			actions := plan.New(o, &policy.Decision{Replicas: 5})
			require.Equal(t, new(int32(5)), actions.Replicas)
			result := plan.Unwritten(o, actions)
			result.Violation, result.Refused = &plan.Violation{Reason: v1alpha1.ReasonRefused}, true
			o.History = o.History.After(o, actions, result)
			o.Now = o.Now.Add(10 * time.Second)
			require.False(t, plan.NeedsWriter(o), "no writer reverted them")
		})
	}
}

func TestARefusedScaledObjectThatIsCurrentAgainDelaysNoWake(t *testing.T) {
	o := outcome(t, 0)
	mayBeZero(&o)
	byKEDA(t)(&o)
	wanted, decision := o.ScaledObject.Labels[plan.LabelPolicy], &policy.Decision{Replicas: 2}
	o.ScaledObject.Labels[plan.LabelPolicy] = "edited"
	actions := plan.New(o, decision)
	require.NotNil(t, actions.ScaledObject)
	refused := &plan.Violation{Condition: v1alpha1.ConditionAutoscalerApplied, Reason: v1alpha1.ReasonRefused}
	o.History = o.History.After(o, actions, plan.Result{ScaledObject: o.ScaledObject, Violation: refused, Refused: true})
	require.Equal(t, plan.Actions{Violation: refused}, plan.New(o, decision))
	o.ScaledObject.Labels[plan.LabelPolicy] = wanted
	require.Equal(t, new(int32(2)), plan.New(o, decision).Replicas)
}

func TestAFailedTakeOverIsTriedAgainAfterLongerPauses(t *testing.T) {
	o := contested(conflict("HorizontalPodAutoscaler", "theirs", ""))
	o.Violation = plan.Check(o.Subject, o.Autoscalers)
	failed := plan.Result{
		ApplyFailed: errors.New("the API server does not answer"),
		Violation:   &plan.Violation{Reason: v1alpha1.ReasonTakeOverFailed},
	}
	var attempts []int
	for second := range 200 {
		o.Now = noon().Add(time.Duration(second) * time.Second)
		actions := plan.New(o, nil)
		if actions.Suspend == nil {
			require.Equal(t, failed.Violation, actions.Violation, "the status keeps the reason")
			continue
		}
		attempts = append(attempts, second)
		o.History = o.History.After(o, actions, failed)
	}
	require.Equal(t, []int{0, 2, 6, 14, 30, 62, 122, 182}, attempts)
}

func TestAnAutoscalerWithoutToleranceIsAppliedAgainEachHour(t *testing.T) {
	o := outcome(t, 3)
	o.Autoscaler.Spec.Behavior.ScaleUp.Tolerance = nil
	var times []time.Duration
	for at := time.Duration(0); at <= 150*time.Minute; at += 30 * time.Minute {
		o.Now = noon().Add(at)
		actions := plan.New(o, &policy.Decision{Replicas: 3})
		if actions.Reapply {
			times = append(times, at)
		}
		o.History = o.History.After(o, actions, plan.Unwritten(o, actions))
	}
	require.Equal(t, []time.Duration{time.Hour, 2 * time.Hour}, times)
}
