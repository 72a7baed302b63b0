// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

func TestStrategies(t *testing.T) {
	blocked := func(r backlog.Reading) backlog.Reading {
		r.Blocked = true
		return r
	}
	timing := func(instances int, r backlog.Reading) backlog.Reading {
		r.Instances.Timed = instances
		return r
	}
	tests := map[string]deciding{
		"divides the backlog by the threshold of one replica": {
			in: asking(1, reading(2001, 50), backlogStrategy(1000)), want: 3, equation: "2001 backlog / 1000 per replica = 2.00",
		},
		"follows the largest recommendation": {
			in:    asking(1, reading(100, 500), backlogStrategy(1000), v1alpha1.Strategy{Type: v1alpha1.StrategyCapacity}),
			state: policy.State{Capacity: learned(100)}, want: byTerms,
		},
		"divides the publish rate by the rate of a replica": {
			in: asking(1, reading(0, 1000), rateStrategy("100")), state: policy.State{Arrivals: arrivals(1000)},
			want: 10, equation: "1000/s arriving / 100/s per replica = 10.00",
		},
		"accepts rates below one message per second": {
			in: asking(1, reading(0, 1), rateStrategy("250m")), state: policy.State{Arrivals: arrivals(1)},
			want: 4, equation: "1/s arriving / 0.25/s per replica = 4.00",
		},
		"does not look at the backlog when it follows the rate": {
			in: asking(5, reading(1_000_000, 500), rateStrategy("100")), state: policy.State{Arrivals: arrivals(500)}, want: 5,
		},
		"does not add a trend to the rate": {
			in: asking(5, reading(0, 500), rateStrategy("100")),
			state: policy.State{Arrivals: &policy.Arrivals{
				Rate: 500, Rise: 0.05, Peak: 1000,
				Past: []policy.RateAt{{At: ago(time.Minute), Rate: 300}, {At: ago(30 * time.Second), Rate: 400}},
			}}, want: 5,
		},
		"does not follow a rate that dips once": {
			in:    asking(5, reading(0, 300), rateStrategy("100")),
			state: policy.State{Arrivals: &policy.Arrivals{Rate: 500, Rise: 0.05, At: ago(10 * time.Second)}}, want: 5,
		},
		"waits for a rate": {
			in: func() policy.Input {
				in := asking(4, reading(0, 0), rateStrategy("100"))
				in.Reading.PublishRate = backlog.Unknown(backlog.ErrNoRate)
				return in
			}(),
			want: 4, hold: policy.HoldLearning, message: "until Pulsar has answered twice",
		},
		"adds replicas that are too busy up to the target": {
			in: asking(10, used(10, 0.72), utilizationStrategy(50)), state: policy.State{Capacity: covering(0.9)},
			want: 16, equation: "10 replicas x 80% busy / 50% = 16.00",
		},
		"uses the usual busy time before saturation": {
			in: asking(10, used(10, usual),
				utilizationStrategy(50)), want: 20, equation: "10 replicas x 100% busy / 50% = 20.00",
		},
		"limits the busy time of a replica to 1": {in: asking(10, used(10, 0.99), utilizationStrategy(100)), want: 10},
		"removes replicas that idle": {
			in: asking(10, used(10, 0.2*usual),
				utilizationStrategy(50)), want: 4, equation: "10 replicas x 20% busy / 50% = 4.00",
		},
		"keeps replicas a tenth above the target": {
			in: asking(10, used(10, usual*0.54), utilizationStrategy(50)), want: 10,
			equation: "10 replicas x 54% busy / 50% = 10.80, within a tenth of the target",
		},
		"keeps replicas a tenth below the target": {
			in: asking(10, used(10, usual*0.46), utilizationStrategy(50)), want: 10,
		},
		"does not go down because few of the replicas consume yet": {
			in: asking(10, used(5, usual), utilizationStrategy(70)), want: 10,
			equation: "5 replicas x 100% busy / 70% = 7.14, and 5 are starting",
		},
		"counts replicas that start as used when fewer are needed": {
			in: asking(10, used(6, 0.2*usual), utilizationStrategy(50)), want: 7,
			equation: "6 replicas x 20% busy / 50% = 2.40, and 4 are starting",
		},
		"counts replicas of which no time is measured yet as starting": {
			in: asking(4, timing(2, used(4, usual)), utilizationStrategy(50)), want: 4,
		},
		"scales up beyond the replicas that start": {in: asking(10, used(9, usual), utilizationStrategy(50)), want: 18},
		"holds before a replica consumes": {
			in: asking(3, used(0, 0),
				utilizationStrategy(50)), want: 3, hold: policy.HoldLearning, message: "no replica consumes yet",
		},
		"holds where consumers are not known": {
			in: func() policy.Input {
				in := asking(3, used(3, 0.1), utilizationStrategy(50))
				in.Reading.Consumers = backlog.Unknown(backlog.ErrNotRequested)
				return in
			}(),
			want: 3, hold: policy.HoldUnknown,
		},
		"holds for an asynchronous function and names the fix": {
			in: func() policy.Input {
				in := asking(3, used(3, 0.01), utilizationStrategy(50))
				in.Reading.Instances.Asynchronous = true
				return in
			}(),
			want: 3, hold: policy.HoldLearning, message: "use strategy Capacity or RatePerReplica",
		},
		"holds without instance metrics and names the fix": {
			in: func() policy.Input {
				in := asking(3, used(3, 0.01), utilizationStrategy(50))
				in.Reading.Instances.Busy = backlog.Unknown(backlog.ErrNotRequested)
				return in
			}(),
			want: 3, hold: policy.HoldLearning, message: "--instance-metrics=Pods (value rbac.pods of the chart)",
		},
		"holds if instances do not time themselves and names the fix": {
			in: func() policy.Input {
				in := asking(3, used(3, 0.01), utilizationStrategy(50))
				in.Reading.Instances.Busy = backlog.Unknown(errors.New("sinks and sources do not measure their calls"))
				return in
			}(),
			want: 3, hold: policy.HoldLearning, message: "use strategy Capacity or RatePerReplica",
		},
		"scales down to the strategy that needs the most": {
			in:    asking(10, used(10, 0.085), utilizationStrategy(50), rateStrategy("100")),
			state: policy.State{Arrivals: arrivals(500)}, want: 5, equation: "500/s arriving / 100/s per replica = 5.00",
		},
		"does not go down while one of several strategies is unknown": {
			in: func() policy.Input {
				in := asking(10, used(10, 0.085), utilizationStrategy(50), rateStrategy("100"))
				in.Reading.Instances.Busy = backlog.Unknown(backlog.ErrNoRate)
				return in
			}(),
			state: policy.State{Arrivals: arrivals(500)}, want: 10, hold: policy.HoldLearning,
		},
		"scales up while one of several strategies is unknown": {
			in: func() policy.Input {
				in := asking(3, used(3, 0.085), utilizationStrategy(50), rateStrategy("100"))
				in.Reading.Instances.Busy = backlog.Unknown(backlog.ErrNoRate)
				return in
			}(),
			state: policy.State{Arrivals: arrivals(500)}, want: 5,
		},
		"does not go up by rate while dispatch is blocked": {
			in:    asking(3, blocked(reading(0, 500)), rateStrategy("100")),
			state: policy.State{Arrivals: arrivals(500)}, want: 3, hold: policy.HoldDispatchLimited,
		},
		"does not go up by use while dispatch is blocked": {
			in: asking(3, blocked(used(3, usual)), utilizationStrategy(50)), want: 3, hold: policy.HoldDispatchLimited,
		},
		"keeps use below a ceiling that was found": {
			in:    asking(8, stuck(8), utilizationStrategy(50)),
			state: policy.State{Capacity: covering(0.85), Plateau: ceiling(8)},
			want:  8, hold: policy.HoldIneffective,
		},
		"keeps backlog below a ceiling that was found": {
			in:    asking(8, reading(50_000, 500), backlogStrategy(1000)),
			state: policy.State{Capacity: covering(0.85), Plateau: ceiling(8)},
			want:  8, hold: policy.HoldIneffective,
		},
		"does not keep rate below a ceiling": {
			in:    asking(8, reading(50_000, 1000), rateStrategy("100")),
			state: policy.State{Capacity: covering(0.85), Arrivals: arrivals(1000), Plateau: ceiling(8)},
			want:  10,
		},
		"keeps the replicas of RatePerReplica above a ceiling": {
			in:    asking(10, stuck(10), utilizationStrategy(50), rateStrategy("100")),
			state: policy.State{Capacity: covering(0.85), Arrivals: arrivals(1000), Plateau: ceiling(8)},
			want:  10,
		},
	}
	for name, test := range tests {
		t.Run(name, test.run)
	}
}

// ceiling is a plateau that was found at this number of replicas.
func ceiling(replicas int32) policy.Plateau {
	return policy.Plateau{
		Stage: policy.Limited, Since: noon(), Reference: policy.Output{Replicas: 16, Processed: 500}, Each: 100,
		Replicas: replicas, Pause: time.Hour,
	}
}

func TestABusyPoolGetsACeilingInsteadOfAllReplicas(t *testing.T) {
	// With any number of replicas, 500 messages per second are processed and all are busy: a database has that limit.
	for name, strategy := range map[string]v1alpha1.Strategy{
		"by use":     utilizationStrategy(50),
		"by backlog": backlogStrategy(100),
	} {
		t.Run(name, func(t *testing.T) {
			var state policy.State
			current, held := int32(5), map[string]bool{}
			for poll := range 60 {
				in := asking(current, stuck(float64(current)), strategy)
				in.Now = noon().Add(time.Duration(poll) * 10 * time.Second)
				in.Reading.At = in.Now
				var decision policy.Decision
				decision, state = policy.Decide(in, state)
				if decision.Hold != nil {
					held[decision.Hold.Reason] = true
				}
				current = decision.Replicas
			}
			require.True(t, held[policy.HoldIneffective], "holds seen: %v", held)
			require.Less(t, current, int32(12), "of 50")
		})
	}
}

func TestAddingAStrategyNeverRemovesReplicas(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 20_000 {
		in, state := randomInput(r)
		in.Reading.SteadyConsumers = false // learning nothing, so that only the strategies differ
		in.Reading.Instances.Busy = backlog.Known(r.Float64())
		if state.Capacity != nil && r.IntN(3) == 0 {
			state.Plateau = ceiling(1 + r.Int32N(40))
		}
		all := []v1alpha1.Strategy{
			{Type: v1alpha1.StrategyCapacity},
			backlogStrategy(1 + r.Int64N(5000)),
			rateStrategy(fmt.Sprintf("%dm", 1+r.IntN(200_000))), utilizationStrategy(1 + r.Int32N(100)),
		}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		least := int32(0)
		for n := 1; n <= len(all); n++ {
			in.Spec.Strategies = all[:n]
			decision, _ := policy.Decide(in, state)
			require.GreaterOrEqual(t, decision.Wanted, least, "with %v added", all[n-1])
			require.GreaterOrEqual(t, decision.Replicas, *in.Spec.MinReplicas)
			require.LessOrEqual(t, decision.Replicas, in.Spec.MaxReplicas)
			least = decision.Wanted
		}
	}
}
