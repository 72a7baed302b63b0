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

func TestCapacityIsLearnedOnlyFromReplicasThatWereBusyThroughout(t *testing.T) {
	busy := reading(5000, 400)
	busy.ProcessRate, busy.Consumers, busy.SteadyConsumers = backlog.Known(300), backlog.Known(3), true
	busy.LeastUndispatched = backlog.Known(2000)
	tests := map[string]struct {
		change func(*backlog.Reading)
		want   float64 // 0: nothing learned
	}{
		"something was always left to dispatch": {func(*backlog.Reading) {}, 100},
		"everything was dispatched at some time": {func(
			r *backlog.Reading,
		) {
			r.LeastUndispatched = backlog.Known(0)
		}, 0},
		"only messages published a moment ago": {func(
			r *backlog.Reading,
		) {
			r.LeastUndispatched = backlog.Known(5)
		}, 0},
		"a replica joined":     {func(r *backlog.Reading) { r.SteadyConsumers = false }, 0},
		"dispatch was blocked": {func(r *backlog.Reading) { r.Blocked = true }, 0},
		"no messages were processed": {
			func(r *backlog.Reading) { r.ProcessRate = backlog.Known(0) },
			0,
		},
		"the number of consumers is unknown": {func(
			r *backlog.Reading,
		) {
			r.Consumers = backlog.Unknown(backlog.ErrNotRequested)
		}, 0},
		"several consumers of a Failover subscription": {func(
			r *backlog.Reading,
		) {
			r.LeastUndispatched = backlog.Unknown(backlog.ErrNoData)
		}, 0},
		"one consumer that held all of more than it could do": {func(r *backlog.Reading) {
			r.LeastUndispatched,
				r.Consumers = backlog.Known(0), backlog.Known(1)
		}, 300},
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

// Calls that are shorter than the time between them show at most half of the time as busy. Such a pool counted as idle,
// and its whole backlog as messages that no replica can process: it stayed at one replica forever.
func TestAPoolWithShortCallsIsBusy(t *testing.T) {
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
		p.in.Spec.MinReplicas, p.in.Spec.MaxReplicas = &current, current // so that it stays saturated
		if r.IntN(3) == 0 {
			p.covered = 0
		}
		p.queue = 2 * p.rate(0)
		p.run(3 * p.poll)
		require.NotNil(t, p.state.Capacity, "covered %.2f", p.covered)
		off := math.Abs(math.Log(p.state.Capacity.MessagesPerSecond / one))
		require.LessOrEqual(t, off, math.Log(1.12), "covered %.2f, %d replicas: %+v of %g", p.covered, current,
			p.state.Capacity, one)
		if off > math.Log(1.1) {
			worse++
		}
	}
	require.LessOrEqual(t, worse, 4, "one in a hundred, if all three have noise in the same direction")
}

// At maxReplicas each poll opened an episode, in which nothing is learned. Replicas that cannot be added can be no
// plateau.
func TestAPoolAtItsMaximumGoesOnLearning(t *testing.T) {
	p := newPlant(4, 1000, 100)
	p.in.Spec.MaxReplicas = 4
	p.run(300)
	require.Empty(t, p.state.Plateau.Stage)
	learnedBefore := p.state.Capacity.Observations
	p.one = 50
	p.run(300)
	require.Greater(t, p.state.Capacity.Observations, learnedBefore+20)
	require.InEpsilon(t, 50, p.state.Capacity.MessagesPerSecond, 0.05)
}

// showing is a poll of two replicas, n times ten seconds after noon, with this rate and busy time each; with a backlog
// throughout or never.
func showing(poll int, each, busy float64, waiting bool) policy.Input {
	in := input(2, reading(0, 2*each))
	in.Spec.MinReplicas, in.Spec.MaxReplicas = new(int32(2)), 2
	in.Now = noon().Add(time.Duration(poll) * 10 * time.Second)
	in.Reading.At, in.Reading.SteadyConsumers = in.Now, true
	in.Reading.Consumers, in.Reading.ProcessRate = backlog.Known(2), backlog.Known(2*each)
	in.Reading = timed(in.Reading, 2, busy, 2*each)
	if waiting {
		for _, m := range []*backlog.Measurement{
			&in.Reading.Ready, &in.Reading.LeastReady, &in.Reading.Undispatched,
			&in.Reading.LeastUndispatched,
		} {
			*m = backlog.Known(1e6)
		}
	}
	return in
}

// untimed is a poll of replicas that do not report busy time.
func untimed(in policy.Input) policy.Input {
	in.Reading.Instances.Busy = backlog.Unknown(backlog.ErrNotRequested)
	return in
}

func TestCapacityIsLearned(t *testing.T) {
	known := policy.State{Capacity: covering(0.9)}
	tests := map[string]struct {
		state    policy.State
		polls    []policy.Input
		rate     float64
		coverage float64
		variance float64 // at least
	}{
		"one outlier is ignored": {known, []policy.Input{showing(1, 20, 0.9, true)}, 100, 0.9, 0},
		"the second outlier counts": {
			known,
			[]policy.Input{showing(1, 20, 0.9, true), showing(2, 20, 0.9, true)},
			20.9, 0.9, 0,
		},
		"two outliers in opposite directions do not count": {
			known,
			[]policy.Input{showing(1, 20, 0.9, true), showing(2, 500, 0.9, true)},
			100, 0.9, 0,
		},
		"an outlier is forgotten after a usual observation": {
			known, []policy.Input{showing(1, 20, 0.9, true), showing(2, 100, 0.9, true), showing(3, 20, 0.9, true)}, 100, 0.9, 0,
		},
		"busy time shows the capacity without a backlog": {known, []policy.Input{showing(1, 50, 0.45, false)}, 100, 0.9, 0},
		"low busy time shows the capacity too": {
			known, []policy.Input{showing(1, 50, 0.09, false), showing(2, 50, 0.09, false)}, 497, 0.9, 0,
		},
		"low busy time shows nothing before saturation": {
			policy.State{Capacity: learned(100)},
			[]policy.Input{showing(1, 50, 0.09, false), showing(2, 50, 0.09, false)},
			100, 0, 0,
		},
		"more output without busy time disproves the capacity": {
			known, []policy.Input{untimed(showing(1, 150, 0, false)), untimed(showing(2, 150, 0, false))}, 150, 0.9, 0,
		},
		"replicas that finish more once do not": {known, []policy.Input{untimed(showing(1, 150, 0, false))}, 100, 0.9, 0},
		"coverage rises by a fifth":             {known, []policy.Input{showing(1, 100, 1, true)}, 100, 0.92, 0},
		"coverage falls by a fiftieth":          {known, []policy.Input{showing(1, 100, 0.8, true)}, 100, 0.898, 0},
		"unknown coverage never reduces the uncertainty": {
			policy.State{}, func() (polls []policy.Input) {
				for poll := range 100 {
					polls = append(polls, showing(poll, 50, 0.5, false))
				}
				return polls
			}(), 95, 0, 0.15 * 0.15 / 2,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state := test.state
			for _, in := range test.polls {
				_, state = policy.Decide(in, state)
			}
			require.InEpsilon(t, test.rate, state.Capacity.MessagesPerSecond, 0.03)
			require.InDelta(t, test.coverage, state.Capacity.Coverage, 1e-9)
			require.GreaterOrEqual(t, state.Capacity.Variance, test.variance)
		})
	}
}

// A replica that has just started was busy for a part of the time between two reads of its metrics. A coverage of that
// part made its capacity a third, once it was no longer saturated.
func TestCoverageIsThatOfTheTimeInWhichAReplicaConsumed(t *testing.T) {
	started := showing(1, 50, 0.27, true)
	started.Reading.PublishRate = backlog.Known(200)
	started.Reading.Instances.ServiceTime = backlog.Known(0.019)
	_, state := policy.Decide(started, policy.State{})
	require.InDelta(t, 50, state.Capacity.MessagesPerSecond, 1e-9)
	require.InDelta(t, 0.95, state.Capacity.Coverage, 1e-9)
	for poll := range 5 {
		idle := showing(2+poll, 16, 0.3, false)
		idle.Reading.Instances.ServiceTime = backlog.Known(0.019)
		_, state = policy.Decide(idle, state)
	}
	require.InDelta(t, 50, state.Capacity.MessagesPerSecond, 0.1)
}

// For a Failover subscription Pulsar counts sent messages, which are more while receive queues fill.
func TestTheRateOfAFailoverSubscriptionIsThatOfItsInstances(t *testing.T) {
	in := showing(1, 300, 0.9, true)
	in.CurrentReplicas, in.Reading.Consumers = 1, backlog.Known(1)
	in.Reading.Type = backlog.Failover
	in.Reading.Instances.ProcessRate = backlog.Known(100)
	_, state := policy.Decide(in, policy.State{Capacity: covering(0.9), ReadAt: noon()})
	require.Less(t, state.Capacity.MessagesPerSecond, 101.0)
	in.Reading.Type = backlog.Shared
	_, state = policy.Decide(in, policy.State{Capacity: covering(0.9), ReadAt: noon()})
	require.Equal(t, int8(1), state.Capacity.Surprise, "600/s is far off")
}

func TestTheInstancesThatAnswerDoNotFinishWhatAllDo(t *testing.T) {
	in := showing(1, 300, 0.9, true)
	in.CurrentReplicas, in.Reading.Consumers = 1, backlog.Known(1)
	in.Reading.Type = backlog.Failover
	in.Reading.PublishRate, in.Reading.GrowthRate = backlog.Known(150), backlog.Known(50)
	in.Reading.Instances.ProcessRate = backlog.AtLeast(20, backlog.ErrPartial)
	_, state := policy.Decide(in, policy.State{Capacity: covering(0.9), ReadAt: noon()})
	require.InDelta(t, 100, state.Capacity.MessagesPerSecond, 1, "what arrives and does not stay is finished")
}

func TestCallsOfTheInstancesThatAnswerCount(t *testing.T) {
	variance := func(processed backlog.Measurement) float64 {
		in := showing(1, 50, 0.5, false)
		in.Reading.Instances.ServiceTime, in.Reading.Instances.ProcessRate = backlog.Known(0.019), processed
		in.Reading.Instances.Window = 10 * time.Second
		_, state := policy.Decide(in, policy.State{})
		return state.Capacity.Variance
	}
	require.InDelta(t, variance(backlog.Known(50)), variance(backlog.AtLeast(50, backlog.ErrPartial)), 1e-9)
	require.Less(t, variance(backlog.Known(50)), variance(backlog.Unknown(backlog.ErrPartial)))
}

// Replicas without metrics show no capacity until they are busy, and acknowledgements on their way are backlog.
func TestAnIdlePoolThatDoesNotReportItsTimeIsReducedUntilACapacityIsKnown(t *testing.T) {
	for name, tt := range map[string]struct{ inTransit, one, most float64 }{
		"nothing is in transit":                      {0, 60, 4},
		"acknowledgements are in transit":            {9, 60, 4},
		"a second of arrivals may wait, so all stay": {180, 19, 10},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlant(10, 180, tt.one)
			p.covered = 0
			p.change = func(_ int, in *policy.Input) {
				messages := p.queue + tt.inTransit
				in.Reading.Ready, in.Reading.LeastReady = backlog.Known(messages), backlog.Known(messages)
			}
			p.run(2 * 3600)
			require.LessOrEqual(t, float64(p.desired), tt.most)
			require.GreaterOrEqual(t, float64(p.desired)*tt.one, 180.0)
		})
	}
}
