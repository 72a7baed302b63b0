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

// meddled decides every ten seconds of two minutes for a pool of three that is right, while another writer changes the
// replicas.
func meddled(foreign func(second int, current int32) int32, mode v1alpha1.Mode) (decided []int32) {
	state, current := policy.State{Capacity: learned(100), Arrivals: arrivals(200)}, int32(3)
	for second := 0; second <= 240; second += 10 {
		current = foreign(second, current)
		in := input(current, reading(0, 200))
		in.Spec.Mode = mode
		in.Now = noon().Add(time.Duration(second) * time.Second)
		in.Reading.At, in.Reading.Consumers = in.Now, backlog.Known(float64(current))
		var decision policy.Decision
		decision, state = policy.Decide(in, state)
		decided = append(decided, decision.Replicas)
		if mode != v1alpha1.ModeRecommend {
			current = decision.Replicas
		}
	}
	return decided
}

func TestAManualRaiseIsHeldForAWindow(t *testing.T) {
	once := func(second int, current int32) int32 {
		if second == 60 {
			return 12
		}
		return current
	}
	decided := meddled(once, v1alpha1.ModeAuto)
	require.Equal(t, int32(3), decided[5])
	for second := 60; second < 90; second += 10 {
		require.Equal(t, int32(12), decided[second/10], "after %d s", second)
	}
	require.Equal(t, int32(3), decided[len(decided)-1], "then the need counts")
	require.NotEqual(t, int32(12), meddled(once, v1alpha1.ModeRecommend)[7],
		"beside another autoscaler Recommend says what it would do itself")
}

func TestAManualReductionIsReverted(t *testing.T) {
	decided := meddled(func(second int, current int32) int32 {
		if second == 60 {
			return 1
		}
		return current
	}, v1alpha1.ModeAuto)
	require.GreaterOrEqual(t, decided[6], int32(3))
}

// TestAManualRaiseFromZeroIsHeld: zero replicas before are not the same as nothing known before.
func TestAManualRaiseFromZeroIsHeld(t *testing.T) {
	first := policy.State{Capacity: learned(100), Arrivals: arrivals(0)}
	_, state := policy.Decide(idle(0, 0), first)
	decision, state := policy.Decide(idle(5, 10), state)
	require.Equal(t, int32(5), decision.Replicas)
	require.Equal(t, policy.HoldStabilizing, decision.Hold.Reason)
	decision, _ = policy.Decide(idle(5, 120), state)
	require.Equal(t, int32(1), decision.Replicas, "then the need counts")

	decision, _ = policy.Decide(idle(5, 0), first)
	require.Equal(t, int32(1), decision.Replicas, "it is unknown how many there were before")
}

// TestAWakeIsNoManualRaise: the autoscaler writes what was decided, and KEDA activates one replica by itself.
func TestAWakeIsNoManualRaise(t *testing.T) {
	waking := idle(0, 0)
	waking.Reading.Ready, waking.Reading.Total = backlog.Known(10_000), backlog.Known(10_000)
	first := policy.State{Capacity: learned(100), Arrivals: arrivals(0)}
	decision, state := policy.Decide(waking, first)
	require.Greater(t, decision.Replicas, int32(2))
	_, state = policy.Decide(idle(decision.Replicas, 10), state)
	needed := state.Recommendations
	require.Zero(t, needed[len(needed)-1].Replicas, "they do not count as needed")

	_, state = policy.Decide(idle(0, 0), first)
	_, state = policy.Decide(idle(1, 10), state)
	for second := 20; second <= 310; second += 10 {
		decision, state = policy.Decide(idle(1, second), state)
	}
	require.Equal(t, int32(0), decision.Replicas, "it is removed after the cooldown period")
}

func TestTheCooldownPeriodIsThePolicys(t *testing.T) {
	for name, test := range map[string]struct {
		seconds int32
		want    int
	}{"none": {0, 0}, "twenty seconds": {20, 20}, "eight minutes": {480, 480}} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, wentToZero(func(_ int, in *policy.Input) {
				in.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{CooldownPeriodSeconds: &test.seconds}}
			}))
		})
	}
}

func TestAHoldNamesTheWriterOfTheReplicas(t *testing.T) {
	const kept = "9 replicas were written by kubectl scale 20s ago, and are kept for the stabilization window of 30s"
	const needed = "3 replicas are enough, 9 were needed 20s ago"
	tests := map[string]struct {
		raise *policy.ManualRaise
		want  string
	}{
		"kubectl scale":                     {raised(9, 20*time.Second), kept},
		"no learned state":                  {nil, needed},
		"one of another number":             {raised(12, 20*time.Second), needed},
		"one that is older than the window": {raised(9, 45*time.Second), needed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state := policy.State{Capacity: learned(100), Arrivals: arrivals(200)}
			in := input(9, reading(0, 200))
			in.ManualRaise = test.raise
			decision, _ := policy.Decide(in, state.Continue(9, noon().Add(-20*time.Second)))
			require.Equal(t, int32(9), decision.Replicas)
			require.Equal(t, policy.HoldStabilizing, decision.Hold.Reason)
			require.Contains(t, decision.Hold.Message, test.want)
		})
	}
}

func TestTheWriterOfTheReplicasDecidesNothing(t *testing.T) {
	state := policy.State{Capacity: learned(100), Arrivals: arrivals(200)}
	for current := int32(1); current < 12; current++ {
		in := input(current, reading(0, 200))
		unnamed, _ := policy.Decide(in, state)
		in.ManualRaise = raised(current, 20*time.Second)
		named, _ := policy.Decide(in, state)
		require.Equal(t, unnamed.Replicas, named.Replicas)
	}
}

// raised is the number that kubectl scale set some time ago.
func raised(replicas int32, ago time.Duration) *policy.ManualRaise {
	return &policy.ManualRaise{
		ReplicasAt: policy.ReplicasAt{At: noon().Add(-ago), Replicas: replicas}, By: "kubectl scale",
	}
}
