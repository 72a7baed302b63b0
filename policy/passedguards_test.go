// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// requirePassed requires the guards of a decision: those that passed, in order, and the one that held; "" for none.
func requirePassed(t *testing.T, in policy.Input, state policy.State, held string, passed ...string) policy.Decision {
	t.Helper()
	decision, _ := policy.Decide(in, state)
	hold := ""
	if decision.Hold != nil {
		hold = decision.Hold.Reason
	}
	require.Equal(t, held, hold, "%s", decision.Equation)
	require.Equal(t, passed, decision.PassedGuards)
	return decision
}

func TestADecisionListsTheGuardsOfZero(t *testing.T) {
	partial := backlog.Coverage{Topics: 2, Known: 1}
	wake := []string{policy.HoldUnknown, policy.HoldWakeBackoff}
	idleFor := func(state *policy.State, since time.Duration) {
		state.Zero.IdleSince, state.Zero.IdleAt, state.ReadAt = ago(since), noon(), ago(10*time.Second)
	}
	for name, test := range map[string]struct {
		current int32
		change  func(in *policy.Input, state *policy.State)
		want    int32
		held    string
		passed  []string
	}{
		"it sleeps": {0, func(*policy.Input, *policy.State) {}, 0, "", nil},
		"messages wake it": {0, func(in *policy.Input, _ *policy.State) {
			in.Reading.Ready = backlog.Known(50)
		}, 1, "", wake},
		"a part is unknown": {0, func(in *policy.Input, _ *policy.State) {
			in.Reading.Coverage = partial
		}, 0, policy.HoldUnknown, nil},
		"it waits after a wake that processed nothing": {0, func(in *policy.Input, state *policy.State) {
			in.Reading.Ready, state.Zero = backlog.Known(50), policy.Zero{Since: noon(), Backoff: time.Minute}
		}, 0, policy.HoldWakeBackoff, wake[:1]},
		"the last replica works": {1, func(in *policy.Input, _ *policy.State) {
			in.Reading.PublishRate = backlog.Known(50)
		}, 1, "", nil},
		"the last replica works again": {1, func(in *policy.Input, state *policy.State) {
			idleFor(state, time.Minute)
			in.Reading.PublishRate = backlog.Known(1)
		}, 1, "", nil},
		"the last replica is idle, not for long": {1, func(_ *policy.Input, state *policy.State) {
			idleFor(state, time.Minute)
		}, 1, policy.HoldStabilizing, wake[:1]},
		"the last replica is to stay": {1, func(in *policy.Input, state *policy.State) {
			idleFor(state, time.Minute)
			in.Spec.MinReplicas = new(int32(1))
		}, 1, "", nil},
		"the last replica may work for an unknown part": {1, func(in *policy.Input, _ *policy.State) {
			in.Reading.Coverage = partial
		}, 1, policy.HoldUnknown, nil},
		"the last replica is removed": {1, func(_ *policy.Input, state *policy.State) {
			idleFor(state, time.Hour)
		}, 0, "", []string{policy.HoldUnknown, policy.HoldStabilizing}},
	} {
		t.Run(name, func(t *testing.T) {
			in, state := idle(test.current, 0), policy.State{Capacity: learned(100), Arrivals: arrivals(0)}
			test.change(&in, &state)
			decision := requirePassed(t, in, state, test.held, test.passed...)
			require.Equal(t, test.want, decision.Replicas)
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
