// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// speedUp is code that was slow for an hour and became faster by a factor; its replicas are then busy for a share of
// their time, or have the same load as before with a share of 0.
type speedUp struct {
	covered, slow, times, busy float64
	// acked is that of plant.
	acked float64
}

const hour = 3600

// used is how many seconds after the change at most one replica more runs than the faster code needs.
func (s speedUp) used(t *testing.T, forget bool) int {
	t.Helper()
	load := 15 * s.slow
	p := newPlant(1, load, s.slow)
	p.covered, p.acked = s.covered, s.acked
	p.run(hour)
	require.InEpsilon(t, s.slow, p.state.Capacity.MessagesPerSecond, 0.1)
	if forget {
		p.state = policy.State{}.Continue(p.in.CurrentReplicas, p.state.DecidedAt)
	}
	return s.follow(p, load)
}

// follow is how many seconds after the change a plant takes.
func (s speedUp) follow(p *plant, load float64) int {
	p.one = s.slow * s.times
	rate := load
	if s.busy > 0 {
		rate = s.busy * p.one * float64(p.in.CurrentReplicas)
	}
	p.rate = func(int) float64 { return rate }
	need := int32(math.Ceil(rate/(0.93*p.one))) + 1
	for second := p.poll; second <= 6*hour; second += p.poll {
		if p.run(p.poll); p.in.CurrentReplicas <= need {
			return second
		}
	}
	return math.MaxInt
}

// If Pulsar counts messages in hand as backlog, a Function without a capacity keeps its replicas: so the run without a
// learned state has a Pulsar that does not.
func TestACapacityThatIsTooLowIsUnlearned(t *testing.T) {
	t.Parallel()
	const minute = 60
	for _, covered := range []float64{0.98, 0} {
		for _, times := range []float64{2, 5, 9, 25} {
			for busy, within := range map[float64]int{0.6: 15 * minute, 0.1: 120 * minute, 0: 120 * minute} {
				t.Run(fmt.Sprintf("covered %g, %g times as fast, busy %g", covered, times, busy), func(t *testing.T) {
					t.Parallel()
					s := speedUp{covered: covered, slow: 4, times: times, busy: busy}
					fresh := s.used(t, true)
					if covered == 0 {
						s.acked = 0.05
					}
					used := s.used(t, false)
					t.Logf("used after %d s, after %d s without what was learned", used, fresh)
					require.LessOrEqual(t, used, within)
					if fresh < math.MaxInt {
						require.LessOrEqual(t, used, fresh+10)
					}
				})
			}
		}
	}
}

// With shorter calls more of the time in hand is the time until the acknowledgement, which shows less.
func TestMessagesInHandShowThatReplicasBecameFaster(t *testing.T) {
	t.Parallel()
	for _, slow := range []float64{0.5, 4, 20, 100} {
		for _, acked := range []float64{0.005, 0.05, 0.1} {
			for _, times := range []float64{9, 25} {
				t.Run(fmt.Sprintf("%g/s, acknowledged after %g s, %g times as fast", slow, acked, times), func(t *testing.T) {
					t.Parallel()
					s := speedUp{slow: slow, times: times, acked: acked}
					used, fresh := s.used(t, false), s.used(t, true)
					s.acked = 0
					unknown, least := s.used(t, false), s.used(t, true)
					t.Logf("used after %d s, %d s if in hand is unknown; without what was learned %d s and %d s", used, unknown,
						fresh, least)
					require.LessOrEqual(t, used, min(fresh, least))
					require.Greater(t, unknown, hour/2)
				})
			}
		}
	}
}

// uncounted messages in hand are those of Failover.
func uncounted(r *backlog.Reading) { r.Unacked = backlog.Unknown(backlog.ErrNoData) }

// Busy time and saturation are more exact, and a full queue shows nothing.
func TestMessagesInHandCountOnlyWithoutOtherSigns(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		covered float64
		change  func(*backlog.Reading)
		want    bool
	}{
		"untimed replicas":               {0, func(*backlog.Reading) {}, true},
		"replicas that report busy time": {0.98, func(*backlog.Reading) {}, false},
		"unknown, as of Failover":        {0, uncounted, false},
		"changing consumers":             {0, func(r *backlog.Reading) { r.SteadyConsumers = false }, false},
		"a backlog all the time":         {0, func(r *backlog.Reading) { r.LeastUndispatched = backlog.Known(1000) }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlant(10, 80, 10).knowing()
			p.covered, p.state.Capacity.Coverage, p.acked = test.covered, test.covered, 0.05
			p.change = func(_ int, in *policy.Input) { test.change(&in.Reading) }
			p.run(300)
			require.Equal(t, test.want, p.state.InHand.Messages > 0, "%+v", p.state.InHand)
		})
	}
}

// A checkpoint may have any numbers.
func TestMessagesInHandOfNoReplicaAreNoReference(t *testing.T) {
	t.Parallel()
	p := newPlant(10, 200, 10).knowing()
	p.covered, p.state.Capacity.Coverage, p.state.Capacity.Probe = 0, 0, 20
	p.state.InHand = policy.InHand{Messages: 100}
	p.run(60)
	require.Positive(t, p.state.Capacity.Failed)
	require.Zero(t, p.state.Capacity.Turnover)
	_, err := p.state.Encode()
	require.NoError(t, err)
}

// Code that was fast, became slow and is fast again: the comparison is with the last state, not with the best.
func TestMessagesInHandShowThatASlowDependencyIsOver(t *testing.T) {
	t.Parallel()
	const fast, slow = 100.0, 4.0
	p := newPlant(1, 60, fast)
	p.covered, p.acked = 0, 0.05
	p.run(hour)
	p.one = slow
	p.run(hour)
	require.InEpsilon(t, slow, p.state.Capacity.MessagesPerSecond, 0.1)
	require.LessOrEqual(t, speedUp{slow: slow, times: fast / slow}.follow(p, 60), 600)
}

// An attempt with too few replicas ends before a message is late, and the next pause is longer.
func TestFewerReplicasAreTriedLessAndLessOften(t *testing.T) {
	for _, acked := range []float64{0, 0.05} {
		p := newPlant(10, 93, 10).knowing()
		p.covered, p.state.Capacity.Coverage, p.acked = 0, 0, acked
		p.run(6 * hour)
		require.InEpsilon(t, 10, p.state.Capacity.MessagesPerSecond, 0.1)
		require.LessOrEqual(t, p.attempts(0), 8, "%d", p.changes())
		require.GreaterOrEqual(t, p.attempts(0), 5, "%d", p.changes())
		for _, one := range p.log {
			waiting, _ := one.in.Reading.Ready.Value()
			require.Less(t, waiting/93, 30.0, "seconds of arrivals at %d s", one.second)
		}
	}
}

// changingLoads follows random loads for four hours each: the attempts in an hour, the mean number of replicas, and the
// share of the time in which messages wait for longer than the objective.
func changingLoads(inHand bool) (attempts, replicas, late float64) {
	const loads, hours = 16, 4
	for seed := range uint64(loads) {
		random := rand.New(rand.NewPCG(seed, 99))
		one := 2 * math.Pow(250, random.Float64())
		p := newPlant(3, 0, one)
		p.covered, p.sync, p.start, p.rate = 0, 15, 10+random.IntN(50), changingRate(random, one)
		p.acked = []float64{0.005, 0.05, 0.1}[random.IntN(3)]
		if !inHand {
			p.change = func(_ int, in *policy.Input) { uncounted(&in.Reading) }
		}
		p.run(hour)
		for range hours * hour / p.poll {
			p.run(p.poll)
			replicas += float64(len(p.ready))
			if p.queue > 60*one*float64(p.running()) {
				late++
			}
		}
		attempts += float64(p.attempts(hour))
	}
	polls := float64(loads * hours * hour / 10) // a poll each 10 s
	return attempts / (loads * hours), replicas / polls, late / polls
}

// changingRate is a constant load, a sine, pulses or a walk, of noisy Poisson processes.
func changingRate(random *rand.Rand, one float64) func(int) float64 {
	low, noise, period, kind := 0.5+7.5*random.Float64(), 0.4*random.Float64(), 600+random.IntN(3000), random.IntN(4)
	high, at := low*math.Pow(4, random.Float64())*1.5, random.Float64()
	return func(second int) float64 {
		switch kind {
		case 1:
			at = (1 + math.Sin(2*math.Pi*float64(second)/float64(period))) / 2
		case 2:
			at = 0
			if second%period < 240 {
				at = 1
			}
		case 3:
			if second%30 == 0 {
				at = min(1, max(0, at+0.08*random.NormFloat64()))
			}
		}
		mean := one * (low + at*(high-low)) * max(0, 1+noise*random.NormFloat64())
		return math.Round(max(0, mean+math.Sqrt(mean)*random.NormFloat64()))
	}
}

// A load that falls also shortens the time in hand: this costs attempts, which must not cost more.
func TestMessagesInHandCostFewAttemptsOnLoadsThatChange(t *testing.T) {
	t.Parallel()
	without, replicas, late := changingLoads(false)
	with, replicasWith, lateWith := changingLoads(true)
	t.Logf("%.2f attempts in an hour, %.2f if in hand is unknown; %.2f and %.2f replicas; %.3f and %.3f %% late", with,
		without, replicasWith, replicas, 100*lateWith, 100*late)
	require.LessOrEqual(t, with, without+0.5)
	require.LessOrEqual(t, replicasWith, 1.005*replicas)
	require.LessOrEqual(t, lateWith, late+0.0002)
}
