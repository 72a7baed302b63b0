// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// times multiplies every measurement of load by factors; partitions keep their shares.
func times(in policy.Input, rate, waiting float64) policy.Input {
	scaled := func(m backlog.Measurement, by float64) backlog.Measurement {
		if value, err := m.Value(); err == nil {
			return backlog.Known(value * by)
		}
		return m
	}
	r := &in.Reading
	r.PublishRate = scaled(r.PublishRate, rate)
	for _, m := range []*backlog.Measurement{&r.Total, &r.Ready, &r.LeastReady, &r.Undispatched, &r.LeastUndispatched} {
		*m = scaled(*m, waiting)
	}
	in.Partitions = append([]backlog.PartitionReading(nil), in.Partitions...)
	for i := range in.Partitions {
		in.Partitions[i].PublishRate = scaled(in.Partitions[i].PublishRate, rate)
		in.Partitions[i].Ready = scaled(in.Partitions[i].Ready, waiting)
	}
	return in
}

// withCapacity is a state with another capacity, and without an episode or a ceiling of the earlier one.
func withCapacity(state policy.State, times float64) policy.State {
	changed := *state.Capacity
	changed.MessagesPerSecond *= times
	state.Capacity, state.Plateau = &changed, policy.Plateau{}
	return state
}

func TestMoreWorkAndLessCapacityNeverNeedFewerReplicas(t *testing.T) {
	t.Parallel()
	tests := map[string]func(r *rand.Rand, in policy.Input, state policy.State) (policy.Input, policy.State){
		"more arrives": func(r *rand.Rand, in policy.Input, state policy.State) (policy.Input, policy.State) {
			return times(in, 1+r.ExpFloat64(), 1), state
		},
		"a larger backlog": func(r *rand.Rand, in policy.Input, state policy.State) (policy.Input, policy.State) {
			return times(in, 1, 1+r.ExpFloat64()), state
		},
		"both": func(r *rand.Rand, in policy.Input, state policy.State) (policy.Input, policy.State) {
			return times(in, 1+r.ExpFloat64(), 1+r.ExpFloat64()), state
		},
		"each replica processes less": func(r *rand.Rand, in policy.Input, state policy.State) (policy.Input, policy.State) {
			return in, withCapacity(state, 1/(1+r.ExpFloat64()))
		},
		"more backlog in a partition": func(r *rand.Rand, in policy.Input, state policy.State) (policy.Input, policy.State) {
			more := times(in, 1, 1)
			if len(more.Partitions) == 0 {
				return more, state
			}
			one, extra := &more.Partitions[r.IntN(len(more.Partitions))], r.ExpFloat64()*5000
			ready, _ := one.Ready.Value()
			all, _ := more.Reading.Ready.Value()
			one.Ready, more.Reading.Ready = backlog.Known(ready+extra), backlog.Known(all+extra)
			return more, state
		},
	}
	for name, more := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compared, higher := 0, 0
			eachInput(5, func(r *rand.Rand, in policy.Input, state policy.State) {
				if in.Unknown != nil || state.Capacity == nil || state.Arrivals == nil {
					return // without a capacity there is no formula to be monotonous
				}
				in, state = unlearnable(capacityAlone(in)), withCapacity(state, 1)
				// Too few for any number of partitions spread them as evenly as they can.
				in.Spec.MaxReplicas = max(in.Spec.MaxReplicas, int32(len(in.Partitions)))
				less, _ := policy.Decide(in, state)
				inMore, stateMore := more(r, in, state)
				larger, _ := policy.Decide(inMore, stateMore)
				require.GreaterOrEqual(t, larger.Wanted, less.Wanted, "%d at %+v\n%s\n%s", in.CurrentReplicas, state.Arrivals,
					less.Equation, larger.Equation)
				compared++
				if larger.Wanted > less.Wanted {
					higher++
				}
			})
			require.Greater(t, compared, 2000)
			require.Greater(t, higher, 100)
		})
	}
}

func TestScalingEveryQuantityAlikeChangesNothing(t *testing.T) {
	t.Parallel()
	const c = 4 // a power of two keeps floating point exact
	compared := 0
	eachInput(6, func(_ *rand.Rand, in policy.Input, state policy.State) {
		if in.Unknown != nil || state.Capacity == nil || state.Arrivals == nil {
			return
		}
		in, state = unlearnable(capacityAlone(in)), withCapacity(state, 1)
		load := *state.Arrivals
		load.Dispersion = max(10, load.Dispersion) // with independent messages, relative noise depends on their number
		state.Arrivals = new(load)
		decision, _ := policy.Decide(in, state)
		state = withCapacity(state, c)
		load.Rate, load.Peak, load.Dispersion = c*load.Rate, c*load.Peak, c*load.Dispersion
		load.Counted.Rate, load.Surge.Peak = c*load.Counted.Rate, c*load.Surge.Peak
		load.Surge.Published, load.Surge.Finished = c*load.Surge.Published, c*load.Surge.Finished
		load.Past = append([]policy.RateAt(nil), load.Past...)
		for i := range load.Past {
			load.Past[i].Rate *= c
		}
		state.Arrivals = &load
		state.Floor.Messages *= c
		scaled, _ := policy.Decide(times(in, c, c), state)
		require.Equal(t, decision.Replicas, scaled.Replicas)
		require.Equal(t, decision.Wanted, scaled.Wanted)
		compared++
	})
	require.Greater(t, compared, 2000)
}

// The same in a closed loop, with everything learned from the load itself.
func TestALoadFourTimesAsLargeOfReplicasFourTimesAsFastIsScaledAlike(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for compared := 0; compared < 40; {
		a := anyPlant(r)
		b := *a
		high, up := a.rate(0), 200+r.IntN(400)
		if high < 400 || a.one < 50 {
			continue // the noise of few messages does not scale
		}
		compared++
		a.rate = func(second int) float64 {
			if second < up {
				return high / 4
			}
			return high
		}
		b.one, b.rate, b.random = 4*a.one, func(second int) float64 { return 4 * a.rate(second) }, rand.New(rand.NewPCG(1, 1))
		a.exact, b.exact = true, true
		a.run(1200)
		b.run(1200)
		require.Equal(t, a.replicas(), b.replicas(), "%v", a)
	}
}

// Messages that no replica can process are no work, however many.
func TestABacklogThatIdleReplicasLeaveChangesNothing(t *testing.T) {
	t.Parallel()
	var want []int32
	for _, stuck := range []float64{0, 500, 5_000, 5_000_000} {
		p := newPlant(6, 300, 100).knowing()
		p.in.Spec.LatencyObjective.Duration = 0
		p.stuck = stuck
		p.run(1200)
		have := p.replicas()[12:] // a sudden backlog is work until two polls show that it is none
		if want == nil {
			want = have
		}
		require.Equal(t, want[len(want)-30:], have[len(have)-30:], "%.0f messages", stuck)
	}
}
