// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// requirePassed requires the guards of a decision: those that passed, in order, and the one that held; "" for none.
func requirePassed(t *testing.T, in policy.Input, state policy.State, held string, passed ...string) {
	t.Helper()
	decision, _ := policy.Decide(in, state)
	hold := ""
	if decision.Hold != nil {
		hold = decision.Hold.Reason
	}
	require.Equal(t, held, hold, "%s", decision.Equation)
	require.Equal(t, passed, decision.PassedGuards)
}

func TestADecisionListsTheGuardsOfMoreReplicas(t *testing.T) {
	formula := []string{policy.HoldWithinObjective, policy.HoldUnverified, policy.HoldIneffective}
	all := slices.Concat(formula, []string{policy.HoldDispatchLimited, policy.HoldNotStarting})
	scaleUp := func(in *policy.Input, rules v1alpha1.ScaleUpRules) {
		in.Spec.Behavior = &v1alpha1.Behavior{ScaleUp: &rules}
	}
	pods := func(value int32) v1alpha1.ScaleUpRules {
		return v1alpha1.ScaleUpRules{Policies: []v1alpha1.ScalingPolicy{
			{Type: v1alpha1.PodsScalingPolicy, Value: value, PeriodSeconds: 60},
		}}
	}
	for name, test := range map[string]struct {
		rate   float64
		change func(in *policy.Input, state *policy.State)
		held   string
		passed []string
	}{
		"all pass": {800, func(*policy.Input, *policy.State) {}, "", all},
		"all pass, but maxReplicas limits": {800, func(in *policy.Input, _ *policy.State) {
			in.Spec.MaxReplicas = 4
		}, "", all},
		"no change is wanted":  {330, func(*policy.Input, *policy.State) {}, "", nil},
		"the objective is met": {380, func(*policy.Input, *policy.State) {}, policy.HoldWithinObjective, nil},
		"the last step is not verified": {800, func(_ *policy.Input, state *policy.State) {
			state.Plateau = policy.Plateau{
				Stage: policy.Verifying, Since: noon(), Reference: pool(2, 200), Each: 100, Replicas: 4, Doubtful: true,
			}
		}, policy.HoldUnverified, formula[:1]},
		"dispatch is blocked": {800, func(in *policy.Input, _ *policy.State) {
			in.Reading.Blocked, in.Reading.Throttled = true, true
		}, policy.HoldDispatchLimited, formula},
		"dispatch is throttled": {800, func(in *policy.Input, _ *policy.State) {
			in.Reading.Throttled, in.Reading.ProcessRate = true, backlog.Known(200)
		}, policy.HoldDispatchLimited, formula},
		"replicas do not start": {800, func(in *policy.Input, _ *policy.State) {
			in.Reading.Ready, in.Pods = backlog.Known(300_000), &policy.Pods{CrashLooping: 1}
		}, policy.HoldNotStarting, all[:4]},
		"another strategy has no guard of the formula": {800, func(in *policy.Input, _ *policy.State) {
			in.Spec.Strategies = []v1alpha1.Strategy{rateStrategy("100")}
		}, "", all[3:]},
		"a limit of behavior allows it": {800, func(in *policy.Input, _ *policy.State) {
			scaleUp(in, pods(100))
		}, "", append(slices.Clone(all), policy.HoldScaleUpLimit)},
		"a limit of behavior reduces it": {800, func(in *policy.Input, _ *policy.State) {
			scaleUp(in, pods(1))
		}, policy.HoldScaleUpLimit, all},
		"a window of behavior holds": {800, func(in *policy.Input, _ *policy.State) {
			scaleUp(in, v1alpha1.ScaleUpRules{StabilizationWindowSeconds: new(int32(60))})
		}, policy.HoldScaleUpStabilized, all},
		"behavior forbids it": {800, func(in *policy.Input, _ *policy.State) {
			scaleUp(in, v1alpha1.ScaleUpRules{SelectPolicy: v1alpha1.SelectDisabled})
		}, policy.HoldScaleUpLimit, all},
		"frozen replicas try none": {800, func(in *policy.Input, _ *policy.State) {
			in.Frozen = &policy.Hold{Reason: policy.HoldRolloutPaused, Message: "a rollout is paused"}
		}, policy.HoldRolloutPaused, nil},
		"an unknown backlog tries none": {800, func(in *policy.Input, _ *policy.State) {
			in.Unknown = backlog.ErrUnreachable
		}, policy.HoldUnknown, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in, state := wanting(test.rate, 0)
			test.change(&in, &state)
			requirePassed(t, in, state, test.held, test.passed...)
		})
	}
}

// A reason with several guards has passed with the last of them.
func TestADecisionListsTheGuardsOfFewerReplicas(t *testing.T) {
	all := []string{policy.HoldUnknown, policy.HoldStabilizing}
	for name, test := range map[string]struct {
		change func(in *policy.Input, state *policy.State)
		held   string
		passed []string
	}{
		"all pass": {func(*policy.Input, *policy.State) {}, "", all},
		"all pass, but minReplicas limits": {func(in *policy.Input, _ *policy.State) {
			in.Spec.MinReplicas = new(int32(4))
		}, "", all},
		"the reading is old": {func(in *policy.Input, _ *policy.State) {
			in.Reading.At = ago(31 * time.Second)
		}, policy.HoldStabilizing, nil},
		"a part is unknown": {func(in *policy.Input, _ *policy.State) {
			in.Reading.Coverage = backlog.Coverage{Topics: 2, Known: 1}
		}, policy.HoldUnknown, nil},
		"the arrivals are unknown": {func(in *policy.Input, _ *policy.State) {
			in.Reading.PublishRate = backlog.Unknown(backlog.ErrNoRate)
		}, policy.HoldUnknown, nil},
		"pods are replaced": {func(in *policy.Input, _ *policy.State) {
			in.Pods = &policy.Pods{Updating: true}
		}, policy.HoldStabilizing, all[:1]},
		"it is too early": {func(_ *policy.Input, state *policy.State) {
			state.Recommendations = []policy.ReplicasAt{{At: ago(29 * time.Second), Replicas: 4}}
		}, policy.HoldStabilizing, all[:1]},
		"behavior forbids it": {func(in *policy.Input, _ *policy.State) {
			in.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{SelectPolicy: v1alpha1.SelectDisabled}}
		}, policy.HoldScaleDownLimit, all},
	} {
		t.Run(name, func(t *testing.T) {
			in, state := wanting(90, 0)
			test.change(&in, &state)
			requirePassed(t, in, state, test.held, test.passed...)
		})
	}
}

func TestADecisionListsTheGuardsOfZero(t *testing.T) {
	partial := backlog.Coverage{Topics: 2, Known: 1}
	wake := []string{policy.HoldUnknown, policy.HoldWakeBackoff}
	for name, test := range map[string]struct {
		current int32
		change  func(in *policy.Input, state *policy.State)
		held    string
		passed  []string
	}{
		"it sleeps": {0, func(*policy.Input, *policy.State) {}, "", nil},
		"messages wake it": {0, func(in *policy.Input, _ *policy.State) {
			in.Reading.Ready = backlog.Known(50)
		}, "", wake},
		"a part is unknown": {0, func(in *policy.Input, _ *policy.State) {
			in.Reading.Coverage = partial
		}, policy.HoldUnknown, nil},
		"it waits after a wake that processed nothing": {0, func(in *policy.Input, state *policy.State) {
			in.Reading.Ready, state.Zero.Until = backlog.Known(50), noon().Add(time.Minute)
		}, policy.HoldWakeBackoff, wake[:1]},
		"the last replica works": {1, func(in *policy.Input, _ *policy.State) {
			in.Reading.PublishRate = backlog.Known(50)
		}, "", nil},
		"the last replica is idle, not for long": {1, func(_ *policy.Input, state *policy.State) {
			state.Zero.IdleSince, state.Zero.IdleAt, state.ReadAt = ago(time.Minute), noon(), ago(10*time.Second)
		}, policy.HoldStabilizing, wake[:1]},
		"the last replica may work for an unknown part": {1, func(in *policy.Input, _ *policy.State) {
			in.Reading.Coverage = partial
		}, policy.HoldUnknown, nil},
		"the last replica is removed": {1, func(_ *policy.Input, state *policy.State) {
			state.Zero.IdleSince, state.Zero.IdleAt, state.ReadAt = ago(time.Hour), noon(), ago(10*time.Second)
		}, "", []string{policy.HoldUnknown, policy.HoldStabilizing}},
	} {
		t.Run(name, func(t *testing.T) {
			in, state := idle(test.current, 0), policy.State{Capacity: learned(100), Arrivals: arrivals(0)}
			test.change(&in, &state)
			requirePassed(t, in, state, test.held, test.passed...)
		})
	}
}

func TestNoGuardPassesAndHolds(t *testing.T) {
	eachInput(20, func(_ *rand.Rand, in policy.Input, state policy.State) {
		decision, _ := policy.Decide(in, state)
		passed := decision.PassedGuards
		sorted := slices.Sorted(slices.Values(passed))
		require.Len(t, slices.Compact(sorted), len(passed), "each once: %s", passed)
		require.LessOrEqual(t, len(passed), 16, "as many as a status has")
		if decision.Hold != nil {
			require.NotContains(t, passed, decision.Hold.Reason)
		}
	})
}
