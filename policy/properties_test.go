// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// partitioned makes a reading one of a Failover subscription with partitions of different shares.
func partitioned(r *rand.Rand, in policy.Input, partitions int) policy.Input {
	in.Reading.Type, in.Reading.Partitions = backlog.Failover, partitions
	in.Reading.Unacked, in.Reading.Undispatched = backlog.Unknown(backlog.ErrNoData), backlog.Unknown(backlog.ErrNoData)
	rate, _ := in.Reading.PublishRate.Value()
	ready, _ := in.Reading.Ready.Value()
	shares, sum := make([]float64, partitions), 0.0
	for i := range shares {
		shares[i] = math.Pow(r.Float64(), 3)
		sum += shares[i]
	}
	in.Partitions = make([]backlog.PartitionReading, partitions)
	for i := range shares {
		in.Partitions[i] = backlog.PartitionReading{
			Index: i, Ready: backlog.Known(ready * shares[i] / sum), PublishRate: backlog.Known(rate * shares[i] / sum),
		}
	}
	return in
}

// eachInput calls f for random inputs, and for those of simulated lives with the states of real decisions.
func eachInput(seed uint64, check func(r *rand.Rand, in policy.Input, state policy.State)) {
	r := rand.New(rand.NewPCG(seed, 1))
	for n := range 4000 {
		in, state := randomInput(r)
		if n%4 == 0 {
			in = partitioned(r, in, 1+r.IntN(12))
		}
		check(r, in, state)
	}
	for life := range uint64(16) {
		l := newLife(100*seed + life)
		partitions := 0
		if life%3 == 0 {
			partitions = 1 + r.IntN(12)
		}
		for range 150 {
			in := l.next()
			if partitions > 0 && in.Unknown == nil {
				in = partitioned(rand.New(rand.NewPCG(life, 2)), in, partitions)
			}
			before := l.state
			var decision policy.Decision
			decision, l.state = policy.Decide(in, before)
			l.in.CurrentReplicas = decision.Replicas
			check(r, in, before)
		}
	}
}

// unlearnable is an input that does not change the capacity, so that two of them differ only in the load.
func unlearnable(in policy.Input) policy.Input {
	in.Reading.SteadyConsumers = false
	return in
}

// capacityAlone evaluates only the capacity model.
func capacityAlone(in policy.Input) policy.Input {
	in.Spec.Strategies = []v1alpha1.Strategy{{Type: v1alpha1.StrategyCapacity}}
	return in
}

func TestReplicasAreWithinTheirBounds(t *testing.T) {
	t.Parallel()
	eachInput(1, func(r *rand.Rand, in policy.Input, state policy.State) {
		in.Spec.MinReplicas = new(r.Int32N(3))
		in.Spec.MaxReplicas = max(1, *in.Spec.MinReplicas+r.Int32N(60))
		decision, _ := policy.Decide(in, state)
		require.GreaterOrEqual(t, decision.Replicas, *in.Spec.MinReplicas)
		require.LessOrEqual(t, decision.Replicas, in.Spec.MaxReplicas)
	})
}

func TestTheCapacityModelRecommendsNoMoreReplicasThanPartitions(t *testing.T) {
	t.Parallel()
	eachInput(2, func(r *rand.Rand, in policy.Input, state policy.State) {
		partitions := 1 + r.IntN(12)
		if in.Unknown != nil || int(in.CurrentReplicas) > partitions {
			return
		}
		in = partitioned(r, capacityAlone(in), partitions)
		state.Type = policy.Type{} // of the reading
		switch r.IntN(6) {
		case 0:
			in.Partitions = nil
		case 1:
			in.Partitions[0].Ready = backlog.Unknown(backlog.ErrPartial)
		case 2:
			in.Reading.PublishRate = backlog.Known(0)
		case 3:
			in.CurrentReplicas, in.Spec.MinReplicas = 0, new(int32)
		}
		decision, _ := policy.Decide(in, state)
		require.LessOrEqual(t, decision.Wanted, int32(partitions), "%d %+v", in.CurrentReplicas, decision)
		if state.Decided.Replicas <= int32(partitions) && *in.Spec.MinReplicas <= int32(partitions) {
			require.LessOrEqual(t, decision.Replicas, int32(partitions), "%d %+v", in.CurrentReplicas, decision)
		}
	})
}

// The ways in which a reading is not complete: none of them may remove replicas.
func TestUnknownOldOrPartialReadingsNeverRemoveReplicas(t *testing.T) {
	t.Parallel()
	old := func(in *policy.Input) time.Time { return in.Now.Add(-policy.FreshPolls*in.PollInterval - time.Second) }
	ways := map[string]func(*policy.Input){
		"no reading": func(in *policy.Input) { in.Unknown = backlog.ErrUnreachable },
		"it is old":  func(in *policy.Input) { in.Reading.At = old(in) },
		"it is old, with trouble": func(in *policy.Input) {
			in.Reading.At, in.Reading.Trouble = old(in), errors.New("connection refused")
		},
		"the backlog is unknown": func(in *policy.Input) {
			in.Reading.Ready, in.Reading.Total = backlog.Unknown(backlog.ErrPartial), backlog.Unknown(backlog.ErrPartial)
		},
		"the arrivals are unknown": func(in *policy.Input) { in.Reading.PublishRate = backlog.Unknown(backlog.ErrNoRate) },
		"a topic is unknown": func(in *policy.Input) {
			in.Reading = fixture.Partial(in.Reading, backlog.ErrForbidden)
		},
		"a partition is unknown": func(in *policy.Input) {
			*in = partitioned(rand.New(rand.NewPCG(1, 1)), *in, 5)
			in.Partitions[3].Ready = backlog.Unknown(backlog.ErrPartial)
		},
		"the rate of a partition is unknown": func(in *policy.Input) {
			*in = partitioned(rand.New(rand.NewPCG(1, 1)), *in, 5)
			in.Partitions[2].PublishRate = backlog.Unknown(backlog.ErrNoRate)
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lowered := 0
			eachInput(3, func(_ *rand.Rand, in policy.Input, state policy.State) {
				if in.Unknown != nil {
					return
				}
				in = capacityAlone(in)
				whole, _ := policy.Decide(in, state)
				least := min(in.CurrentReplicas, in.Spec.MaxReplicas)
				if whole.Replicas < least {
					lowered++
				}
				way(&in)
				state.Type = policy.Type{} // of the reading
				decision, after := policy.Decide(in, state)
				require.GreaterOrEqual(t, decision.Replicas, least, "%+v", decision)
				require.False(t, math.IsNaN(after.Floor.Messages))
			})
			require.Greater(t, lowered, 100, "of these are lowered when all is known")
		})
	}
}
