// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// partial is the input while one of a hundred topics is unknown.
func partial(in policy.Input) policy.Input {
	in.Reading = fixture.Partial(in.Reading, backlog.ErrForbidden)
	return in
}

func TestAPartialReadingScalesUpAsFarAsItShows(t *testing.T) {
	tests := map[string]struct {
		in    policy.Input
		state policy.State
	}{
		"for a backlog": {
			in: input(3, reading(49_500_000, 100)), state: policy.State{Capacity: learned(100), Arrivals: arrivals(100)},
		},
		"for more arrivals than were known": {
			in: input(3, reading(0, 2000)), state: policy.State{Capacity: learned(100), Arrivals: arrivals(100)},
		},
		"for messages per replica": {in: asking(3, reading(5000, 0), backlogStrategy(500))},
		"for a rate per replica":   {in: asking(3, reading(0, 500), rateStrategy("50"))},
		"for a utilization":        {in: asking(3, used(3, usual), utilizationStrategy(50))},
		"while the capacity is unknown": {
			in: func() policy.Input {
				in := input(3, reading(49_500_000, 100))
				in.Reading.Consumers = backlog.Known(3)
				return in
			}(),
		},
		"for partitions of a Failover subscription": {
			in:    partitioned(rand.New(rand.NewPCG(1, 1)), input(3, reading(1_000_000, 100)), 40),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(100)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.in.Spec.MaxReplicas = 100
			whole, _ := policy.Decide(test.in, test.state)
			require.Greater(t, whole.Replicas, int32(3))
			decision, _ := policy.Decide(partial(test.in), test.state)
			require.Equal(t, whole.Replicas, decision.Replicas)
			require.Equal(t, whole.Equation, decision.Equation)
		})
	}
}

func TestAPartialReadingHoldsTheRest(t *testing.T) {
	state := policy.State{Capacity: learned(100), Arrivals: arrivals(10)}
	decision, after := policy.Decide(partial(input(8, reading(0, 10))), state)
	require.Equal(t, int32(8), decision.Replicas)
	require.Equal(t, policy.HoldUnknown, decision.Hold.Reason)
	require.Equal(t, "partial answer: 99 of 100 topics are known; missing: persistent://public/default/in-7 "+
		"(permission missing)", decision.Hold.Message)
	require.Equal(t, state.Arrivals, after.Arrivals, "a lower bound lowers no rate")
}

func TestNoCapacityIsLearnedFromAPartialReading(t *testing.T) {
	t.Parallel()
	eachInput(11, func(_ *rand.Rand, in policy.Input, state policy.State) {
		if in.Unknown != nil {
			return
		}
		_, after := policy.Decide(partial(in), state)
		if state.Capacity == nil {
			require.Nil(t, after.Capacity)
		} else {
			require.InDelta(t, state.Capacity.MessagesPerSecond, after.Capacity.MessagesPerSecond, 0)
			require.InDelta(t, state.Capacity.Coverage, after.Capacity.Coverage, 0)
			require.Equal(t, state.Capacity.Observations, after.Capacity.Observations)
		}
		require.Equal(t, state.Floor, after.Floor)
		if state.Arrivals != nil {
			require.GreaterOrEqual(t, after.Arrivals.Rate, state.Arrivals.Rate)
		}
	})
}

func TestReplicasStayForAWindowAfterALongPartialReading(t *testing.T) {
	state := policy.State{Capacity: learned(100), Arrivals: arrivals(10)}
	went := -1
	for second := 0; second <= 900; second += 10 {
		in := input(8, reading(0, 10))
		in.Now = noon().Add(time.Duration(second) * time.Second)
		in.Reading.At = in.Now
		if second <= 600 {
			in = partial(in)
		}
		var decision policy.Decision
		decision, state = policy.Decide(in, state)
		if decision.Replicas < 8 && went < 0 {
			went = second
		}
	}
	require.Equal(t, 630, went)
}
