// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// twin tries every number of replicas: the smallest at which no replica has more than it can process, counting a
// partition that is too much for one as one replica's capacity; or else the smallest number with the least load on the
// busiest replica.
func twin(loads []float64, limit float64) int32 {
	tops := make([]float64, len(loads)+1)
	for n := 1; n <= len(loads); n++ {
		for replica := range n {
			sum := 0.0
			for partition, load := range loads {
				if partition%n == replica {
					sum += min(load, limit)
				}
			}
			tops[n] = max(tops[n], sum)
		}
		if tops[n] <= limit {
			return int32(n)
		}
	}
	panic("as many replicas as partitions are always enough")
}

func TestReplicasOfAFailoverSubscriptionMatchExhaustiveSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 52))
	seen := map[int32]bool{}
	for range 5000 {
		const one, normal = 100.0, 5.0
		rate := math.Exp(r.Float64() * 8)
		in := input(1, reading(math.Floor(r.ExpFloat64()*rate*20), rate))
		in.Spec.MaxReplicas = 100
		in = partitioned(r, in, 1+r.IntN(20))
		in.Reading.At = noon().Add(time.Second)
		decision, after := policy.Decide(in, policy.State{Arrivals: arrivals(rate), Capacity: learned(one)})
		utilization, drain := decision.Terms.Utilization, decision.Terms.Drain
		steady, waiting := make([]float64, len(in.Partitions)), make([]float64, len(in.Partitions))
		for i, p := range in.Partitions {
			arriving, _ := p.PublishRate.Value()
			ready, _ := p.Ready.Value()
			steady[i], waiting[i] = arriving, arriving+max(0, ready-normal*arriving)/drain
		}
		want := max(twin(steady, utilization*one), twin(waiting, one))
		needed := after.Recommendations[len(after.Recommendations)-1].Replicas
		require.Equal(t, want, needed, "%v %s", steady, decision.Equation)
		seen[want] = true
	}
	require.Greater(t, len(seen), 15)
}

func TestReplicasOfAFailoverSubscription(t *testing.T) {
	// with has partitions with these rates and no backlog.
	with := func(current int32, rates ...float64) policy.Input {
		sum := 0.0
		for _, rate := range rates {
			sum += rate
		}
		in := input(current, reading(0, sum))
		in.Reading.Type, in.Reading.Partitions = backlog.Failover, len(rates)
		for i, rate := range rates {
			in.Partitions = append(in.Partitions,
				backlog.PartitionReading{Index: i, Ready: backlog.Known(0), PublishRate: backlog.Known(rate)})
		}
		return in
	}
	waiting := func(in policy.Input, partition int, messages float64) policy.Input {
		in.Reading.Ready, in.Partitions[partition].Ready = backlog.Known(messages), backlog.Known(messages)
		return in
	}
	change := func(in policy.Input, change func(*policy.Input)) policy.Input {
		change(&in)
		return in
	}
	tests := map[string]struct {
		in   policy.Input
		want int32
	}{
		"spreads equal partitions evenly":                     {with(1, 60, 60, 60, 60), 4},
		"puts two small partitions on each replica":           {with(1, 40, 40, 40, 40), 2},
		"gives the busiest partition a replica of its own":    {with(1, 80, 20, 80, 20), 4},
		"sizes for the busiest replica, not for the sum":      {with(1, 70, 5, 70, 5, 5, 5), 3},
		"adds none for a partition that exceeds one replica":  {with(1, 900, 10), 2},
		"counts the backlog of the busiest partition":         {waiting(with(1, 40, 40, 40, 40), 0, 36*80), 4},
		"has no more than partitions whatever the backlog":    {waiting(with(1, 40, 40, 40, 40), 0, 1e6), 4},
		"leaves the backlog of one partition to its consumer": {waiting(with(1, 0, 0, 0), 0, 1e6), 1},
		"has no more than partitions when these are not known": {change(waiting(with(1, 100, 100), 0, 1e6),
			func(in *policy.Input) { in.Partitions = nil }), 2},
		"wakes no more than partitions": {change(waiting(with(0, 100, 100), 0, 1e6),
			func(in *policy.Input) { in.Spec.MinReplicas = new(int32) }), 2},
		"wakes at most the partitions before the broker knows the type": {change(waiting(with(0, 100, 100), 0, 1e6),
			func(in *policy.Input) {
				in.Spec.MinReplicas, in.Reading.Type, in.Promised = new(int32), backlog.NoType, backlog.Failover
			}), 2},
		"follows the type that the broker reports": {change(waiting(with(1, 100, 100), 0, 1e4), func(in *policy.Input) {
			in.Reading.Type, in.Promised = backlog.Shared, backlog.Failover
		}), 7},
		"has one replica of an Exclusive subscription": {change(waiting(with(1, 100, 100), 0, 1e6),
			func(in *policy.Input) { in.Reading.Type = backlog.Exclusive }), 1},
		"scales down to one with an Exclusive subscription": {change(with(3, 90, 90),
			func(in *policy.Input) { in.Reading.Type = backlog.Exclusive }), 1},
		"scales down to the partitions": {with(9, 90, 90), 2},
		"holds replicas while a partition is unknown": {change(with(4, 40, 40, 40, 40),
			func(in *policy.Input) { in.Partitions[3].PublishRate = backlog.Unknown(backlog.ErrNoRate) }), 4},
		"numbers non-partitioned topics as one topic": {change(with(1, 60, 60, 60),
			func(in *policy.Input) {
				in.Partitions[0].Index, in.Partitions[1].Index, in.Partitions[2].Index = -1, -1, -1
			}), 3},
		"adds up equal partitions of two topics": {change(with(1, 40, 40, 40, 40),
			func(in *policy.Input) { in.Partitions[2].Index, in.Partitions[3].Index = 0, 1 }), 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rate, _ := test.in.Reading.PublishRate.Value()
			decision, _ := policy.Decide(test.in, policy.State{Arrivals: arrivals(rate), Capacity: learned(100)})
			require.Equal(t, test.want, decision.Replicas, "%s %+v", decision.Equation, decision.Hold)
		})
	}
}
