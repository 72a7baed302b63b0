// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

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

func TestAtMinReplicasTheBoundIsTheReasonWithoutANewAnswerToo(t *testing.T) {
	in, state := surplusOf(4, 3, 2*time.Minute)
	in.Spec.MinReplicas = new(int32(4))
	for name, readAt := range map[string]time.Time{"a new answer": {}, "no new answer": in.Reading.At} {
		state.ReadAt = readAt
		decision, _ := policy.Decide(in, state)
		require.Equal(t, int32(4), decision.Replicas, name)
		require.Equal(t, policy.CappedByMin, decision.CappedBy, name)
		require.Nil(t, decision.Hold, name)
	}
}

func TestNeverZeroKeepsOneReplica(t *testing.T) {
	require.Equal(t, -1, wentToZero(func(_ int, in *policy.Input) { in.NeverZero = true }))
	in := idle(0, 0)
	in.NeverZero = true
	decision, _ := policy.Decide(in, policy.State{})
	require.Equal(t, int32(1), decision.Replicas, "it is woken to find its work")
}
