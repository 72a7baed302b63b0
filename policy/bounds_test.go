// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

func TestFrozenReplicasStayWhateverTheBacklogAndTheBounds(t *testing.T) {
	for name, current := range map[string]int32{"below minReplicas": 1, "within": 5, "above maxReplicas": 80} {
		t.Run(name, func(t *testing.T) {
			in := input(current, reading(1e6, 900))
			in.Spec.MinReplicas = new(int32(3))
			in.Frozen = &policy.Hold{Reason: policy.HoldRolloutPaused, Message: "the rollout is paused"}
			decision, _ := policy.Decide(in, policy.State{Capacity: learned(100), Arrivals: arrivals(900)})
			require.Equal(t, current, decision.Replicas)
			require.Equal(t, in.Frozen, decision.Hold)
			require.Empty(t, decision.CappedBy)
			require.NotEmpty(t, decision.Equation, "the recommendation is shown")
			in.Unknown = backlog.ErrUnreachable
			decision, _ = policy.Decide(in, policy.State{})
			require.Equal(t, current, decision.Replicas)
		})
	}
}

func TestNeverZeroKeepsOneReplica(t *testing.T) {
	require.Equal(t, -1, wentToZero(func(_ int, in *policy.Input) { in.NeverZero = true }))
	in := idle(0, 0)
	in.NeverZero = true
	decision, _ := policy.Decide(in, policy.State{})
	require.Equal(t, int32(1), decision.Replicas, "it is woken to find its work")
}

func TestAKnownRestartOfAllReplicasHoldsFromTheFirstChange(t *testing.T) {
	in := input(10, reading(0, 750))
	in.Reading.Consumers, in.Reading.SteadyConsumers = backlog.Known(10), true
	// 9 replicas instead of 8 save enough, unless a change restarts all.
	state := policy.State{Capacity: learned(100), Arrivals: arrivals(750)}
	gentle, _ := policy.Decide(in, state)
	in.Restarts = true
	harsh, _ := policy.Decide(in, state)
	require.Equal(t, int32(10), harsh.Replicas)
	require.Equal(t, policy.HoldSmallChange, harsh.Hold.Reason)
	require.Contains(t, harsh.Hold.Message, "less than 30 %")
	if gentle.Hold != nil {
		require.NotContains(t, gentle.Hold.Message, "less than 30 %")
	}
}
