// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		in       policy.Input
		state    policy.State
		want     int32
		hold     string
		cappedBy string
		equation string
	}{
		"holds enough replicas for the arrivals with headroom": {
			in:    input(5, reading(0, 500)),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(500)},
			want:  6, equation: "500/s arriving / (0.93 x 100/s per replica) = 5.38",
		},
		"adds replicas that drain the backlog within the objective": {
			in:    input(5, reading(62_500, 500)),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(500)},
			want:  22, equation: "(500/s arriving + 60000 backlog / 36s) / 100/s per replica = 21.67",
		},
		"counts messages that join the backlog during a start": {
			in:    input(1, reading(0, 500)),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(500)},
			want:  8, equation: "(500/s arriving + 10000 backlog / 36s) / 100/s per replica = 7.78",
		},
		"scales down to what the arrivals need": {
			in:    input(8, reading(0, 50)),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(50)},
			want:  1,
		},
		"holds the larger recommendation of the stabilization window": {
			in: input(8, reading(0, 50)),
			state: policy.State{
				Capacity: learned(100), Arrivals: arrivals(50),
				Recommendations: []policy.ReplicasAt{{At: noon().Add(-30 * time.Second), Replicas: 3}},
			},
			want: 3, hold: policy.HoldStabilizing,
		},
		"delays a scale-down that saves little of the total": {
			in: input(8, reading(0, 50)),
			state: policy.State{
				Capacity: learned(100), Arrivals: arrivals(50),
				Recommendations: []policy.ReplicasAt{{At: noon().Add(-30 * time.Second), Replicas: 6}},
			},
			want: 8, hold: policy.HoldStabilizing,
		},
		"forgets a recommendation when the window has passed": {
			in: input(8, reading(0, 50)),
			state: policy.State{
				Capacity: learned(100), Arrivals: arrivals(50),
				Recommendations: []policy.ReplicasAt{{At: noon().Add(-2 * time.Minute), Replicas: 6}},
			},
			want: 1,
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
		"keeps to minReplicas": {
			in: func() policy.Input {
				in := input(5, reading(0, 50))
				in.Spec.MinReplicas = new(int32(3))
				return in
			}(),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(50)}, want: 3, cappedBy: "minReplicas",
		},
		"holds replicas while the broker is down": {
			in: func() policy.Input {
				in := input(7, backlog.Reading{})
				in.Unknown = fmt.Errorf("%w: no good answer since noon", backlog.ErrStale)
				return in
			}(),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(50)}, want: 7, hold: policy.HoldUnknown,
		},
		"does not go down on an old reading": {
			in: func() policy.Input {
				in := input(7, reading(0, 50))
				in.Reading.At, in.Reading.Trouble = noon().Add(-31*time.Second), errors.New("connection refused")
				return in
			}(),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(50)}, want: 7, hold: policy.HoldOldReading,
		},
		"scales up on an old reading": {
			in: func() policy.Input {
				in := input(1, reading(0, 500))
				in.Reading.At = noon().Add(-31 * time.Second)
				return in
			}(),
			state: policy.State{Capacity: learned(100)}, want: 8,
		},
		"does not go up while dispatch is blocked": {
			in: func() policy.Input {
				in := input(2, reading(0, 500))
				in.Reading.Blocked = true
				return in
			}(),
			state: policy.State{Capacity: learned(100)}, want: 2, hold: policy.HoldBlocked,
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
			in: input(4, reading(0, 50)), want: 3, equation: "no backlog at 50/s arriving: 1 fewer than 4 replicas",
		},
		"waits for a rate": {
			in: func() policy.Input {
				in := input(4, reading(0, 50))
				in.Reading.PublishRate = backlog.Unknown(backlog.ErrNoRate)
				return in
			}(),
			state: policy.State{Capacity: learned(100)}, want: 4, hold: policy.HoldLearning,
		},
		"divides the backlog by the threshold of one replica": {
			in: func() policy.Input {
				in := input(1, reading(2001, 50))
				in.Spec.Strategies = []v1alpha1.Strategy{{
					Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: 1000},
				}}
				return in
			}(),
			want: 3, equation: "2001 backlog / 1000 per replica = 2.00",
		},
		"follows the largest recommendation": {
			in: func() policy.Input {
				in := input(1, reading(100, 500))
				in.Spec.Strategies = []v1alpha1.Strategy{
					{Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: 1000}},
					{Type: v1alpha1.StrategyCapacity},
				}
				return in
			}(),
			state: policy.State{Capacity: learned(100)}, want: 8,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			decision, _ := policy.Decide(test.in, test.state)
			require.Equal(t, test.want, decision.Replicas, "equation: %s", decision.Equation)
			require.Equal(t, test.cappedBy, decision.CappedBy)
			if test.hold == "" {
				require.Nil(t, decision.Hold)
			} else {
				require.NotNil(t, decision.Hold)
				require.Equal(t, test.hold, decision.Hold.Reason)
				require.NotEmpty(t, decision.Hold.Message)
			}
			if test.equation != "" {
				require.Equal(t, test.equation, decision.Equation)
			}
		})
	}
}
