// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

func TestCapacityIsLearnedOnlyFromReplicasThatWereBusyThroughout(t *testing.T) {
	busy := reading(5000, 400)
	busy.ProcessRate, busy.Consumers, busy.SteadyConsumers = backlog.Known(300), backlog.Known(3), true
	busy.LeastUndispatched = backlog.Known(2000)
	tests := map[string]struct {
		change func(*backlog.Reading)
		want   float64 // 0: nothing learned
	}{
		"something was always left to dispatch":               {func(*backlog.Reading) {}, 100},
		"everything was dispatched at some time":              {func(r *backlog.Reading) { r.LeastUndispatched = backlog.Known(0) }, 0},
		"only what was published a moment ago":                {func(r *backlog.Reading) { r.LeastUndispatched = backlog.Known(5) }, 0},
		"a replica joined":                                    {func(r *backlog.Reading) { r.SteadyConsumers = false }, 0},
		"dispatch was blocked":                                {func(r *backlog.Reading) { r.Blocked = true }, 0},
		"nothing was processed":                               {func(r *backlog.Reading) { r.ProcessRate = backlog.Known(0) }, 0},
		"the number of consumers is unknown":                  {func(r *backlog.Reading) { r.Consumers = backlog.Unknown(backlog.ErrNotAsked) }, 0},
		"several consumers of a Failover subscription":        {func(r *backlog.Reading) { r.LeastUndispatched = backlog.Unknown(backlog.ErrNoData) }, 0},
		"one consumer that held all of more than it could do": {func(r *backlog.Reading) { r.LeastUndispatched, r.Consumers = backlog.Known(0), backlog.Known(1) }, 300},
		"one consumer that nearly ran dry": {func(r *backlog.Reading) {
			r.LeastUndispatched, r.Consumers, r.LeastReady = backlog.Known(0), backlog.Known(1), backlog.Known(299)
		}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := busy
			test.change(&r)
			_, after := policy.Decide(input(3, r), policy.State{})
			if test.want == 0 {
				require.Nil(t, after.Capacity)
				return
			}
			require.NotNil(t, after.Capacity)
			require.InDelta(t, test.want, after.Capacity.MessagesPerSecond, 1e-9)
		})
	}
}

// Calls that take less than what passes between them show half of the time and less at most. Such a pool was taken for one
// that idles, and its whole backlog for messages that nobody can process: it stayed at one replica for ever.
func TestAPoolWhoseCallsAreShortIsSeenToBeBusy(t *testing.T) {
	for _, covered := range []float64{0.2, 0.35, 0.5, 0.6, 0.7, 0.85, 1} {
		p := newPlant(1, 1000, 100)
		p.covered = covered
		p.run(1800)
		require.InEpsilon(t, 100, p.state.Capacity.MessagesPerSecond, 0.05, "covered %.2f", covered)
		require.InDelta(t, covered, p.state.Capacity.Coverage, 0.1, "covered %.2f", covered)
		require.Less(t, p.queue, 1.0, "covered %.2f", covered)
	}
}

func TestTheCapacityIsRightAfterThreeSaturatedPolls(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	worse := 0
	for range 400 {
		one := math.Exp(math.Log(2) + r.Float64()*math.Log(250))
		current := 1 + r.Int32N(20)
		p := newPlant(current, one*float64(current)*(1.3+r.Float64()), one)
		p.covered, p.noise, p.random = 0.5+r.Float64()/2, 0.05, rand.New(rand.NewPCG(r.Uint64(), 1))
		p.in.Spec.MinReplicas, p.in.Spec.MaxReplicas = current, current // so that it stays saturated
		if r.IntN(3) == 0 {
			p.covered = 0
		}
		p.queue = 2 * p.rate(0)
		p.run(3 * p.poll)
		require.NotNil(t, p.state.Capacity, "covered %.2f", p.covered)
		off := math.Abs(math.Log(p.state.Capacity.MessagesPerSecond / one))
		require.LessOrEqual(t, off, math.Log(1.12), "covered %.2f, %d replicas: %+v of %g", p.covered, current, p.state.Capacity, one)
		if off > math.Log(1.1) {
			worse++
		}
	}
	require.LessOrEqual(t, worse, 4, "one in a hundred, when the noise of all three goes the same way")
}

// What cannot be raised can be no plateau: at maxReplicas each poll opened an episode, in which nothing is learned.
func TestAPoolAtItsMaximumGoesOnLearning(t *testing.T) {
	p := newPlant(4, 1000, 100)
	p.in.Spec.MaxReplicas = 4
	p.run(300)
	require.False(t, p.state.Plateau.Open)
	learnedBefore := p.state.Capacity.Observations
	p.one = 50
	p.run(300)
	require.Greater(t, p.state.Capacity.Observations, learnedBefore+20)
	require.InEpsilon(t, 50, p.state.Capacity.MessagesPerSecond, 0.05)
}
