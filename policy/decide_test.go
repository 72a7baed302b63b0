// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// byTerms stands for the replicas that follow from the terms of the equation.
const byTerms = -1

// neededBy follows from the terms of an equation: for the arrivals with headroom, or with the backlog.
func neededBy(t policy.Terms) int32 {
	steady := t.Arriving / (t.Utilization * t.Capacity)
	drain := (t.Arriving + t.Backlog/t.Drain) / t.Capacity
	return int32(math.Ceil(max(steady, drain)))
}

// consuming is an input of replicas that all consume.
func consuming(current int32, r backlog.Reading) policy.Input {
	r.Consumers = backlog.Known(float64(current))
	return input(current, r)
}

// deciding is one decision, with a part of the message of its hold. The equation does not matter if it is empty.
type deciding struct {
	in                                policy.Input
	state                             policy.State
	want                              int32
	hold, message, cappedBy, equation string
}

func (d deciding) run(t *testing.T) {
	decision, _ := policy.Decide(d.in, d.state)
	if d.want == byTerms {
		d.want = neededBy(decision.Terms)
		require.Greater(t, d.want, d.in.CurrentReplicas)
	}
	require.Equal(t, d.want, decision.Replicas, "equation: %s, hold: %v", decision.Equation, decision.Hold)
	require.Equal(t, d.cappedBy, decision.CappedBy)
	if d.hold == "" {
		require.Nil(t, decision.Hold)
	} else {
		require.NotNil(t, decision.Hold)
		require.Equal(t, d.hold, decision.Hold.Reason)
		require.NotEmpty(t, decision.Hold.Message)
		require.Contains(t, decision.Hold.Message, d.message)
	}
	if d.equation != "" {
		require.Equal(t, d.equation, decision.Equation)
	}
}

func TestDecide(t *testing.T) {
	tests := map[string]deciding{
		"holds enough replicas for the arrivals with headroom": {
			in:    input(1, reading(0, 87)),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(87)},
			want:  1,
		},
		"adds replicas for arrivals that exceed the capacity": {
			in:    consuming(5, reading(0, 530)),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(530)},
			want:  byTerms,
		},
		"adds replicas that drain the backlog within the objective": {
			in:    input(5, reading(62_500, 500)),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(500)},
			want:  byTerms,
		},
		"counts messages that join the backlog during a start": {
			in:    input(1, reading(0, 500)),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(500)},
			want:  byTerms,
		},
		"scales down to what the arrivals need": {
			in:    input(8, reading(0, 50)),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(50)},
			want:  1,
		},
		"does not scale up for an old recommendation": {
			in: input(2, reading(0, 50)),
			state: policy.State{
				Capacity: learned(100), Arrivals: arrivals(50),
				Recommendations: []policy.ReplicasAt{{At: noon().Add(-30 * time.Second), Replicas: 6}},
			},
			want: 2, hold: policy.HoldStabilizing,
		},
		"keeps to maxReplicas": {
			in: input(1, reading(0, 50_000)), state: policy.State{Capacity: learned(100)}, want: 50, cappedBy: "maxReplicas",
		},
		"keeps to maxReplicas what was held above it": {
			in: func() policy.Input {
				in := input(8, reading(0, 50))
				in.Spec.MaxReplicas = 5
				return in
			}(),
			state: policy.State{
				Capacity: learned(100), Arrivals: arrivals(50), Recommendations: []policy.ReplicasAt{{At: noon(), Replicas: 8}},
			},
			want: 5, hold: policy.HoldStabilizing,
		},
		"keeps to minReplicas": {
			in: func() policy.Input {
				in := input(5, reading(0, 50))
				in.Spec.MinReplicas = new(int32(3))
				return in
			}(),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(50)}, want: 3, cappedBy: "minReplicas",
		},
		"scales up on an old reading": {
			in: func() policy.Input {
				in := input(1, reading(0, 500))
				in.Reading.At = noon().Add(-31 * time.Second)
				return in
			}(),
			state: policy.State{Capacity: learned(100)}, want: byTerms,
		},
		"doubles when work piles up and no replica was measured yet": {
			in: func() policy.Input {
				in := input(3, reading(6000, 500))
				in.Reading.Consumers = backlog.Known(3)
				return in
			}(),
			want: 6, equation: "6000 backlog > 10s of 500/s arriving: twice the 3 replicas",
		},
		"does not double before all replicas consume": {
			in: func() policy.Input {
				in := input(4, reading(6000, 500))
				in.Reading.Consumers = backlog.Known(3)
				return in
			}(),
			want: 4, hold: policy.HoldLearning,
		},
		"tries one fewer without a backlog or a measurement": {
			in: input(4, reading(0, 50)), want: 3, equation: "no message waits at 50/s arriving: 1 fewer than 4 replicas",
		},
		"tries one fewer while messages are in calls only": {
			in: input(4, reading(49, 50)), want: 3, equation: "no message waits at 50/s arriving: 1 fewer than 4 replicas",
		},
		"keeps all while a second of arrivals may wait": {
			in: input(4, reading(50, 50)), want: 4, hold: policy.HoldLearning,
		},
		"keeps all while messages may wait for a quarter of a tight objective": {
			in: func() policy.Input {
				in := input(4, reading(25, 50))
				in.Spec.LatencyObjective.Duration = 2 * time.Second
				return in
			}(),
			want: 4, hold: policy.HoldLearning,
		},
		"keeps all while few long calls last": {
			in: input(4, reading(1, 0.1)), want: 4, hold: policy.HoldLearning,
		},
		"waits for a rate": {
			in: func() policy.Input {
				in := input(4, reading(0, 50))
				in.Reading.PublishRate = backlog.Unknown(backlog.ErrNoRate)
				return in
			}(),
			state: policy.State{Capacity: learned(100)}, want: 4, hold: policy.HoldLearning,
		},
	}
	for name, test := range tests {
		t.Run(name, test.run)
	}
}

// Replicas that were ordered count from when they consume, so the backlog that they will find shrinks as they come.
func TestThePredictedBacklogCountsReplicasFromWhenTheyConsume(t *testing.T) {
	// Ten replicas of 100/s would keep up with 800/s, and four do not.
	predicted := func(consumers float64, ordered time.Duration) float64 {
		in := input(10, reading(20_000, 800))
		in.Reading.Consumers = backlog.Known(consumers)
		decision, _ := policy.Decide(in, policy.State{
			Capacity: learned(100), Arrivals: arrivals(800),
			Start: policy.Start{Replicas: 10, From: 4, Changed: ago(ordered), Seconds: 40, Count: 5},
		})
		return decision.Terms.Backlog
	}
	all, soon, now := predicted(10, time.Hour), predicted(4, 20*time.Second), predicted(4, 0)
	require.Less(t, all, 20_000.0, "they drain it")
	require.Less(t, all, soon)
	require.Less(t, soon, now)
	require.Greater(t, now, 20_000.0, "it grows until the others consume")
}

// A load of ten times the former one is sized for by its second poll: the replicas that were ordered then are enough.
func TestALoadOfTenTimesIsNoStaircase(t *testing.T) {
	for name, one := range map[string]float64{"few fast replicas": 100, "many slow ones": 20} {
		t.Run(name, func(t *testing.T) {
			p := newPlant(2, 150, one).knowing()
			p.in.CurrentReplicas, p.desired = int32(math.Ceil(190/one)), int32(math.Ceil(190/one))
			p.ready = make([]int, p.desired)
			p.rate = func(second int) float64 {
				if second > 300 {
					return 1500
				}
				return 150
			}
			p.run(600)
			second, most := int32(0), int32(0)
			for _, one := range p.log {
				if one.second == 320 {
					second = one.decision.Replicas
				}
				if one.second > 300 {
					most = max(most, one.decision.Replicas)
				}
			}
			require.Greater(t, float64(second), 1500/one)
			require.LessOrEqual(t, float64(most), 1.25*float64(second))
		})
	}
}
