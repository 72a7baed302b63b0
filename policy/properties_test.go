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

// scenario is a random input whose parts are all known.
func scenario(r *rand.Rand) (policy.Input, policy.State) {
	current := 1 + r.Int32N(40)
	in := input(current, reading(math.Floor(r.ExpFloat64()*5000), r.ExpFloat64()*500))
	in.Spec.MinReplicas = 1 + r.Int32N(3)
	in.Spec.MaxReplicas = in.Spec.MinReplicas + r.Int32N(60)
	in.Reading.At = in.Now.Add(-time.Duration(r.IntN(60)) * time.Second)
	in.Reading.Consumers = backlog.Known(float64(r.Int32N(current + 1)))
	in.Reading.SteadyConsumers, in.Reading.Blocked = r.IntN(2) == 0, r.IntN(10) == 0
	in.Reading.LeastUndispatched = backlog.Known(math.Floor(r.ExpFloat64() * 100))
	state := policy.State{DecidedAt: in.Now.Add(-10 * time.Second)}
	if r.IntN(3) > 0 {
		state.Capacity, state.Arrivals = learned(1+r.ExpFloat64()*100), arrivals(r.ExpFloat64()*500)
	}
	for range r.IntN(4) {
		state.Recommendations = append(state.Recommendations, policy.Recommendation{
			At: in.Now.Add(-time.Duration(r.IntN(200)) * time.Second), Replicas: 1 + r.Int32N(40),
		})
	}
	return in, state
}

func TestDecisionsKeepTheirPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		in, state := scenario(r)
		decision, _ := policy.Decide(in, state)
		require.GreaterOrEqual(t, decision.Replicas, in.Spec.MinReplicas)
		require.LessOrEqual(t, decision.Replicas, in.Spec.MaxReplicas)

		again, _ := policy.Decide(in, state)
		require.Equal(t, decision, again, "the same input gives the same decision")

		unknown := in
		unknown.Unknown = backlog.ErrUnreachable
		held, _ := policy.Decide(unknown, state)
		require.GreaterOrEqual(t, held.Replicas, min(in.CurrentReplicas, in.Spec.MaxReplicas), "what is unknown never lowers replicas")

		if in.Now.Sub(in.Reading.At) > in.FreshFor {
			require.GreaterOrEqual(t, decision.Replicas, min(in.CurrentReplicas, in.Spec.MaxReplicas), "an old reading never lowers replicas")
		}
	}
}

func TestMoreWorkNeverAsksForFewerReplicas(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		in, state := scenario(r)
		if state.Capacity == nil {
			continue // without a capacity there is no formula to be monotonous
		}
		in.Reading.SteadyConsumers = false // learning nothing, so that only the load differs
		less, _ := policy.Decide(in, state)
		more := in
		ready, err := in.Reading.Ready.Value()
		require.NoError(t, err)
		published, err := in.Reading.PublishRate.Value()
		require.NoError(t, err)
		// More arrivals make more of the backlog normal, so the backlog grows by more than that.
		extra := r.ExpFloat64() * 100
		more.Reading.PublishRate = backlog.Known(published + extra)
		more.Reading.Ready = backlog.Known(ready + 10*extra + math.Floor(r.ExpFloat64()*1000))
		higher, _ := policy.Decide(more, state)
		require.GreaterOrEqual(t, higher.Wanted, less.Wanted)
	}
}

func TestScalingEveryQuantityAlikeChangesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 5_000 {
		in, state := scenario(r)
		if state.Capacity == nil {
			continue
		}
		in.Reading.SteadyConsumers = false
		decision, _ := policy.Decide(in, state)
		const c = 4 // a power of two keeps floating point exact
		ready, _ := in.Reading.Ready.Value()
		published, _ := in.Reading.PublishRate.Value()
		in.Reading.Ready, in.Reading.PublishRate = backlog.Known(c*ready), backlog.Known(c*published)
		in.Reading.Undispatched = backlog.Known(c * ready)
		state.Arrivals = arrivals(c * state.Arrivals.Fast)
		state.Capacity = learned(c * state.Capacity.MessagesPerSecond)
		scaled, _ := policy.Decide(in, state)
		require.Equal(t, decision.Replicas, scaled.Replicas)
	}
}
