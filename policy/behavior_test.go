// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// raising decides every ten seconds for a backlog that needs a number of replicas, each for 100 messages, and returns
// the decided numbers. The target follows at once.
func raising(t *testing.T, rules v1alpha1.ScaleUpRules, from int32, needs ...int32) []int32 {
	t.Helper()
	var state policy.State
	var decided []int32
	in := input(from, backlog.Reading{})
	in.Spec.MaxReplicas = 100
	in.Spec.MinReplicas = new(int32(0))
	in.Spec.Strategies = []v1alpha1.Strategy{backlogStrategy(100)}
	in.Spec.Behavior = &v1alpha1.Behavior{ScaleUp: &rules}
	for i, need := range needs {
		in.Now = noon().Add(time.Duration(i) * 10 * time.Second)
		in.Reading = reading(float64(need)*100, 500)
		in.Reading.At = in.Now
		var decision policy.Decision
		decision, state = policy.Decide(in, state)
		if decision.Replicas < need {
			require.NotNil(t, decision.Hold, "at decision %d", i)
		}
		text, err := state.Encode()
		require.NoError(t, err)
		state, err = policy.DecodeState(text, in.Now) // a window continues in the next process
		require.NoError(t, err)
		decided, in.CurrentReplicas = append(decided, decision.Replicas), decision.Replicas
	}
	return decided
}

func TestScaleUpIsLimitedAsInAHorizontalPodAutoscaler(t *testing.T) {
	pods := func(value, seconds int32) v1alpha1.ScalingPolicy {
		return v1alpha1.ScalingPolicy{Type: v1alpha1.PodsScalingPolicy, Value: value, PeriodSeconds: seconds}
	}
	percent := func(value, seconds int32) v1alpha1.ScalingPolicy {
		return v1alpha1.ScalingPolicy{Type: v1alpha1.PercentScalingPolicy, Value: value, PeriodSeconds: seconds}
	}
	policies := func(selected v1alpha1.SelectPolicy, all ...v1alpha1.ScalingPolicy) v1alpha1.ScaleUpRules {
		return v1alpha1.ScaleUpRules{SelectPolicy: selected, Policies: all}
	}
	window := v1alpha1.ScaleUpRules{StabilizationWindowSeconds: new(int32(30))}
	for name, test := range map[string]struct {
		rules v1alpha1.ScaleUpRules
		from  int32
		needs []int32
		want  []int32
	}{
		"without limits it is one step": {v1alpha1.ScaleUpRules{}, 2, []int32{40}, []int32{40}},
		"pods within a period": {
			policies("", pods(4, 20)), 2, []int32{40, 40, 40, 40, 40}, []int32{6, 6, 10, 10, 14},
		},
		"percent within a period, rounded up": {policies("", percent(50, 10)), 3, []int32{40, 40, 40}, []int32{5, 8, 12}},
		"the largest of two": {
			policies(v1alpha1.SelectMax, pods(4, 10), percent(100, 10)), 2, []int32{40, 40, 40}, []int32{6, 12, 24},
		},
		"the smallest of two": {
			policies(v1alpha1.SelectMin, pods(4, 10), percent(100, 10)), 2, []int32{40, 40, 40}, []int32{4, 8, 12},
		},
		"a short step is one step": {policies("", pods(4, 30)), 2, []int32{5, 6, 7}, []int32{5, 6, 6}},
		"percent of no replicas":   {policies("", percent(100, 10)), 0, []int32{40, 40}, []int32{2, 4}},
		"none":                     {policies(v1alpha1.SelectDisabled), 2, []int32{40, 40}, []int32{2, 2}},
		"none from zero":           {policies(v1alpha1.SelectDisabled), 0, []int32{40, 40}, []int32{0, 0}},
		"the window of a burst":    {window, 2, []int32{40, 40, 2, 40, 40}, []int32{2, 2, 2, 2, 2}},
		"the window of a rise":     {window, 2, []int32{10, 12, 20, 20, 20}, []int32{2, 2, 2, 12, 20}},
		"the window ends":          {window, 2, []int32{10, 10, 10, 10}, []int32{2, 2, 2, 10}},
		"the window before a limit": {
			v1alpha1.ScaleUpRules{StabilizationWindowSeconds: new(int32(10)), Policies: []v1alpha1.ScalingPolicy{pods(4, 10)}},
			2,
			[]int32{40, 40, 40},
			[]int32{2, 6, 10},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, raising(t, test.rules, test.from, test.needs...))
		})
	}
}

func TestALimitOfBehaviorIsNamed(t *testing.T) {
	decide := func(current int32, messages float64, behavior v1alpha1.Behavior) policy.Decision {
		in := input(current, reading(messages, 500))
		in.Spec.MinReplicas = new(int32(3))
		in.Spec.Strategies = []v1alpha1.Strategy{backlogStrategy(100)}
		in.Spec.Behavior = &behavior
		decision, _ := policy.Decide(in, policy.State{})
		return decision
	}
	for name, test := range map[string]struct {
		current  int32
		messages float64
		behavior v1alpha1.Behavior
		replicas int32
		hold     policy.Hold
		cappedBy string
	}{
		"scale-up is disabled": {
			5, 900,
			v1alpha1.Behavior{ScaleUp: &v1alpha1.ScaleUpRules{SelectPolicy: v1alpha1.SelectDisabled}},
			5,
			policy.Hold{Reason: "ScaleUpLimit", Message: "behavior.scaleUp.selectPolicy is Disabled"},
			"",
		},
		"minReplicas takes precedence": {
			1, 900,
			v1alpha1.Behavior{ScaleUp: &v1alpha1.ScaleUpRules{SelectPolicy: v1alpha1.SelectDisabled}},
			3,
			policy.Hold{Reason: "ScaleUpLimit", Message: "behavior.scaleUp.selectPolicy is Disabled"},
			policy.CappedByMin,
		},
		"a policy": {
			5, 900,
			v1alpha1.Behavior{ScaleUp: &v1alpha1.ScaleUpRules{Policies: []v1alpha1.ScalingPolicy{{
				Type: v1alpha1.PodsScalingPolicy, Value: 2, PeriodSeconds: 60,
			}}}},
			7,
			policy.Hold{Reason: "ScaleUpLimit", Message: "behavior.scaleUp.policies allow up to 7 replicas now"},
			"",
		},
		"a window": {
			5, 900,
			v1alpha1.Behavior{ScaleUp: &v1alpha1.ScaleUpRules{StabilizationWindowSeconds: new(int32(60))}},
			5,
			policy.Hold{
				Reason:  "ScaleUpStabilized",
				Message: "5 replicas were enough within behavior.scaleUp.stabilizationWindowSeconds (60)",
			},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			decision := decide(test.current, test.messages, test.behavior)
			require.Equal(t, test.replicas, decision.Replicas)
			require.Equal(t, &test.hold, decision.Hold)
			require.Equal(t, test.cappedBy, decision.CappedBy)
		})
	}
}

func TestDisabledScaleDownRemovesNoReplicas(t *testing.T) {
	for _, selected := range []v1alpha1.SelectPolicy{v1alpha1.SelectMax, v1alpha1.SelectDisabled} {
		t.Run(string(selected), func(t *testing.T) {
			var state policy.State
			in := input(8, reading(0, 0))
			in.Spec.Strategies = []v1alpha1.Strategy{backlogStrategy(100)}
			in.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{SelectPolicy: selected}}
			var decision policy.Decision
			for i := range 60 {
				in.Now = noon().Add(time.Duration(i) * 10 * time.Second)
				in.Reading.At = in.Now
				decision, state = policy.Decide(in, state)
				in.CurrentReplicas = decision.Replicas
			}
			if selected == v1alpha1.SelectMax {
				require.Equal(t, int32(1), decision.Replicas)
				return
			}
			require.Equal(t, int32(8), decision.Replicas)
			require.Equal(t, &policy.Hold{
				Reason: policy.HoldScaleDownLimit, Message: "behavior.scaleDown.selectPolicy is Disabled",
			}, decision.Hold)
			in.Spec.MaxReplicas = 6
			decision, _ = policy.Decide(in, state)
			require.Equal(t, int32(6), decision.Replicas, "maxReplicas takes precedence")
		})
	}
}

func TestDisabledScaleUpCreatesNoSubscription(t *testing.T) {
	in := input(0, backlog.Reading{})
	in.Spec.MinReplicas, in.Unknown = new(int32(0)), backlog.ErrSubscriptionNotFound
	decision, _ := policy.Decide(in, policy.State{})
	require.Equal(t, int32(1), decision.Replicas)
	in.Spec.Behavior = &v1alpha1.Behavior{ScaleUp: &v1alpha1.ScaleUpRules{SelectPolicy: v1alpha1.SelectDisabled}}
	decision, _ = policy.Decide(in, policy.State{})
	require.Zero(t, decision.Replicas)
}
