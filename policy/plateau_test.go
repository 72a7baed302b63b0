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

// doing is an input of replicas with work throughout that process this rate; one more poll adds ten seconds.
func doing(current int32, processed float64, polls int) policy.Input {
	in := input(current, stuck(float64(current)))
	in.Reading.ProcessRate = backlog.Known(processed)
	in.Now = noon().Add(time.Duration(polls) * 10 * time.Second)
	in.Reading.At = in.Now
	return in
}

// after is the state after a number of equal polls.
func after(state policy.State, polls int, in func(poll int) policy.Input) policy.State {
	for poll := 1; poll <= polls; poll++ {
		_, state = policy.Decide(in(poll), state)
	}
	return state
}

// with is a state that knows 100/s of a replica, and this plateau.
func with(p policy.Plateau) policy.State {
	return policy.State{Capacity: covering(0.95), Arrivals: arrivals(500), Plateau: p}
}

// pool is a number of replicas that process this rate.
func pool(replicas, processed float64) policy.Output {
	return policy.Output{Replicas: replicas, Processed: processed}
}

// capped is the input without room for more replicas, so that no other verification begins at once.
func capped(in policy.Input) policy.Input {
	in.Spec.MaxReplicas = in.CurrentReplicas
	return in
}

// verifying is a raise of five replicas, each of 100/s, to ten.
func verifying() policy.Plateau {
	return policy.Plateau{Stage: policy.Verifying, Since: noon(), Reference: pool(5, 500), Each: 100, Replicas: 10}
}

// starting is two polls of a raise to ten, in which these consume and process this rate.
func starting(before, processedBefore, since, processedSince float64) func(poll int) policy.Input {
	return func(poll int) policy.Input {
		consume, processed := before, processedBefore
		if poll > 1 {
			consume, processed = since, processedSince
		}
		in := doing(10, processed, poll)
		in.Reading.Consumers, in.Reading.SteadyConsumers = backlog.Known(consume), false
		return in
	}
}

func TestAScaleUpIsVerified(t *testing.T) {
	same := func(current int32, processed float64) func(int) policy.Input {
		return func(poll int) policy.Input { return doing(current, processed, poll) }
	}
	raised := func(processed ...float64) func(int) policy.Input {
		return func(poll int) policy.Input { return capped(doing(10, processed[poll-1], poll)) }
	}
	tests := map[string]struct {
		plateau policy.Plateau
		polls   int
		in      func(poll int) policy.Input
		check   func(*testing.T, policy.Plateau)
	}{
		"from when a pool with work all the time is raised": {
			policy.Plateau{},
			1, same(5, 500),
			func(t *testing.T, p policy.Plateau) {
				require.Equal(t, policy.Verifying, p.Stage)
				require.Equal(t, pool(5, 500), p.Reference)
				require.InEpsilon(t, 100, p.Each, 0.01)
			},
		},
		"not when a raise is held": {policy.Plateau{}, 1, func(poll int) policy.Input {
			in := doing(5, 500, poll)
			in.Reading.Blocked = true
			return in
		}, func(t *testing.T, p policy.Plateau) { require.Empty(t, p.Stage) }},
		"not at maxReplicas": {policy.Plateau{}, 1, func(poll int) policy.Input {
			return capped(doing(5, 500, poll))
		}, func(t *testing.T, p policy.Plateau) { require.Empty(t, p.Stage) }},
		"not by one good poll": {verifying(), 1, raised(900), func(t *testing.T, p policy.Plateau) {
			require.Equal(t, policy.Verifying, p.Stage)
			require.False(t, p.Doubtful)
		}},
		"by two good polls": {verifying(), 2, raised(900, 900), func(t *testing.T, p policy.Plateau) {
			require.Equal(t, policy.Plateau{}, p)
		}},
		"later if some new replicas do not consume": {verifying(), 5, func(poll int) policy.Input {
			in := doing(10, 500, poll)
			in.Reading.Consumers = backlog.Known(7)
			return in
		}, func(t *testing.T, p policy.Plateau) {
			p.Most = policy.Output{}
			require.Equal(t, verifying(), p)
		}},
		"without doubt if those that consume late do what they should": {verifying(), 18, func(poll int) policy.Input {
			consume, processed := 5.0, 500.0
			if poll > 16 {
				consume, processed = 7, 700
			}
			in := capped(doing(10, processed, poll))
			in.Reading.Consumers = backlog.Known(consume)
			return in
		}, func(t *testing.T, p policy.Plateau) {
			require.Equal(t, pool(7, 700), p.Reference)
			require.False(t, p.Doubtful)
		}},
		"against the slower ones if each became slower before the new ones consume": {
			verifying(), 2,
			func(poll int) policy.Input {
				in := doing(10, []float64{250, 480}[poll-1], poll)
				if poll == 1 {
					in.Reading.Consumers = backlog.Known(5)
				}
				return in
			}, func(t *testing.T, p policy.Plateau) {
				require.Equal(t, pool(5, 250), p.Reference)
				require.False(t, p.Doubtful, "5 more do 230 more, of 250")
			},
		},
		"and is limited if all processed less before and since": {
			verifying(), 4,
			func(poll int) policy.Input {
				in := doing(10, 400, poll)
				if poll == 1 {
					in.Reading.Consumers = backlog.Known(5)
				}
				return in
			}, func(t *testing.T, p policy.Plateau) { require.Equal(t, int32(5), p.Ceiling(), "400 / (0.9 x 100)") },
		},
		"against the replicas that consume so far": {verifying(), 3, func(poll int) policy.Input {
			in := raised(690, 430, 430)(poll)
			if poll == 1 {
				in.Reading.Consumers = backlog.Known(7)
			}
			return in
		}, func(t *testing.T, p policy.Plateau) {
			require.Empty(t, p.Stage, "10 do less than 7 did: each became slower")
		}},
		"against the slower ones if each became slower while others started": {
			verifying(), 2, starting(8, 790, 9, 600),
			func(t *testing.T, p policy.Plateau) { require.Equal(t, pool(9, 600), p.Reference, "8 did 790") },
		},
		"against the slower ones if the fall is more than the noise of both polls": {
			verifying(), 2, starting(8, 790, 9, 760),
			func(t *testing.T, p policy.Plateau) { require.Equal(t, pool(9, 760), p.Reference) },
		},
		"against those before if others start and a poll is noisy": {
			verifying(), 2, starting(8, 790, 9, 770),
			func(t *testing.T, p policy.Plateau) { require.Equal(t, verifying().Reference, p.Reference) },
		},
		"against those before if others start and the backlog ends": {verifying(), 2, func(poll int) policy.Input {
			in := starting(8, 790, 9, 600)(poll)
			in.Reading.LeastReady, in.Reading.LeastUndispatched = backlog.Known(500), backlog.Known(0)
			return in
		}, func(t *testing.T, p policy.Plateau) { require.Equal(t, verifying().Reference, p.Reference) }},
		"against earlier polls if replicas stop: their messages count twice": {
			func() policy.Plateau {
				p := verifying()
				p.Most = pool(9, 500)
				return p
			}(), 2, starting(8, 790, 9, 500),
			func(t *testing.T, p policy.Plateau) { require.Equal(t, verifying().Reference, p.Reference) },
		},
		"no longer if replicas keep up and the backlog is in receive queues": {verifying(), 1, func(poll int) policy.Input {
			in := raised(510)(poll)
			in.Reading.LeastUndispatched = backlog.Known(0)
			return in
		}, func(t *testing.T, p policy.Plateau) { require.Empty(t, p.Stage) }},
		"not by two bad polls": {verifying(), 2, same(10, 500), func(t *testing.T, p policy.Plateau) {
			require.Equal(t, policy.Verifying, p.Stage)
			require.True(t, p.Doubtful)
		}},
		"and is limited after three bad polls": {verifying(), 3, same(10, 500), func(t *testing.T, p policy.Plateau) {
			require.Equal(t, policy.Limited, p.Stage)
			require.Equal(t, int32(6), p.Ceiling(), "500 / (0.9 x 100)")
			require.Positive(t, p.Pause)
			require.Equal(t, pool(10, 500), p.Reference)
		}},
		"by the mean of all polls": {verifying(), 3, raised(500, 900, 900), func(t *testing.T, p policy.Plateau) {
			require.Empty(t, p.Stage)
		}},
		"not by one poll in which more do less": {verifying(), 1, raised(400), func(t *testing.T, p policy.Plateau) {
			require.Equal(t, policy.Verifying, p.Stage)
			require.False(t, p.Doubtful)
		}},
		"no longer if more do less, for each became slower": {
			verifying(), 2, raised(400, 400), func(t *testing.T, p policy.Plateau) { require.Empty(t, p.Stage) },
		},
		"and keeps the pause of an earlier ceiling": {
			func() policy.Plateau {
				p := verifying()
				p.Pause = 14 * time.Minute
				return p
			}(), 3, same(10, 500),
			func(t *testing.T, p policy.Plateau) { require.Equal(t, 14*time.Minute, p.Pause) },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state := after(with(test.plateau), test.polls, test.in)
			test.check(t, state.Plateau)
			if test.plateau.Stage != "" {
				require.InDelta(t, 100, state.Capacity.MessagesPerSecond, 1e-9, "an external limit is no capacity")
			}
		})
	}
}

// The first poll after a step down of the capacity has both.
func TestAScaleUpIsComparedWithTheLastPollBefore(t *testing.T) {
	state := after(with(verifying()), 2, func(poll int) policy.Input {
		in := doing(10, []float64{490, 470}[poll-1], poll)
		in.Reading.Consumers = backlog.Known(5)
		return in
	})
	require.Equal(t, pool(5, 470), state.Plateau.Reference)
}

// limited is a ceiling of six replicas, found some time ago, with this time until the first try.
func limited(since, pause time.Duration) policy.Plateau {
	return policy.Plateau{
		Stage: policy.Limited, Since: ago(since), Reference: pool(10, 500), Each: 100, Replicas: 6, Pause: pause,
	}
}

// trying is a try of eight replicas instead of six.
func trying(since, pause time.Duration) policy.Plateau {
	p := limited(since, pause)
	p.Stage, p.Replicas = policy.Trying, 8
	return p
}

func TestACeiling(t *testing.T) {
	const pause = 5 * time.Minute
	at := func(p policy.Plateau, since time.Time) policy.Plateau {
		p.Since = since
		return p
	}
	tests := map[string]struct {
		plateau policy.Plateau
		polls   int
		in      func(poll int) policy.Input
		want    policy.Plateau
	}{
		"stays while the output is equal": {
			limited(0, pause), 20, func(poll int) policy.Input { return doing(6, 500, poll) }, limited(0, pause),
		},
		"is lifted after three polls with more output": {
			limited(0, pause), 3, func(poll int) policy.Input { return doing(6, 541, poll) }, policy.Plateau{Pause: pause},
		},
		"stays after two polls with more output": {
			limited(0, pause), 2, func(poll int) policy.Input { return doing(6, 541, poll) }, limited(0, pause),
		},
		"stays after two polls with more output and one without": {
			limited(0, pause), 3,
			func(poll int) policy.Input { return doing(6, []float64{541, 541, 500}[poll-1], poll) }, limited(0, pause),
		},
		"is lifted without a backlog": {limited(0, pause), 1, func(poll int) policy.Input {
			in := doing(6, 500, poll)
			in.Reading.Ready, in.Reading.LeastReady, in.Reading.LeastUndispatched = backlog.Known(
				10), backlog.Known(0), backlog.Known(0)
			return in
		}, policy.Plateau{Pause: pause}},
		"expires when it could not be checked": {
			limited(21*time.Minute, pause), 1,
			func(poll int) policy.Input {
				in := doing(6, 500, poll)
				in.Reading.Instances.Busy = backlog.Known(0.5)
				return in
			},
			policy.Plateau{Pause: pause},
		},
		"was a false alarm when fewer do less": {
			limited(0, pause), 3, func(poll int) policy.Input { return doing(6, 350, poll) },
			policy.Plateau{Pause: pause},
		},
		"is tried a quarter higher after its pause": {
			limited(6*time.Minute, pause), 3, func(poll int) policy.Input { return doing(6, 500, poll) },
			at(trying(0, pause), noon().Add(30*time.Second)),
		},
		"returns after a failed try, for longer": {
			trying(time.Minute, pause), 3, func(poll int) policy.Input { return doing(8, 500, poll) },
			at(limited(0, 2*pause), noon().Add(30*time.Second)),
		},
		"pauses a quarter of an hour at most": {
			trying(time.Minute, 14*time.Minute), 3, func(poll int) policy.Input { return doing(8, 500, poll) },
			at(limited(0, 15*time.Minute), noon().Add(30*time.Second)),
		},
		"is lifted by a try that processes more": {
			trying(time.Minute, pause), 3, func(poll int) policy.Input { return doing(8, 600, poll) },
			policy.Plateau{Pause: pause},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state := after(with(test.plateau), test.polls, func(poll int) policy.Input { return capped(test.in(poll)) })
			state.Plateau.Seen = policy.Seen{}
			require.Equal(t, test.want, state.Plateau)
		})
	}
}

func TestReplicasGrowToFourTimesTheRequestUntilVerified(t *testing.T) {
	state := with(verifying())
	state.Plateau.Replicas = 8
	in := doing(8, 700, 1)
	in.Reading.Consumers = backlog.Known(6)
	in.Reading.Ready = backlog.Known(200_000)
	decision, _ := policy.Decide(in, state)
	require.Equal(t, int32(32), decision.Replicas)
	require.Equal(t, policy.HoldUnverified, decision.Hold.Reason)
	state.Plateau.Doubtful = true
	in.CurrentReplicas, in.Reading.ProcessRate = 10, backlog.Known(520)
	decision, _ = policy.Decide(in, state)
	require.Equal(t, int32(10), decision.Replicas, "not after a poll that showed no gain")
}

// longCalls are replicas that process one message at a time, each of which takes 300 s: five, and five more that start
// at noon. With a limit, all of them together process what the first five did.
type longCalls struct{ limited bool }

func (l longCalls) ended(second int) (calls float64) {
	const call, replicas = 300, 5
	for i := range replicas {
		if (second+call*i/replicas)%call == 0 {
			calls++
		}
		if second > 0 && second%call == 7*i && !l.limited { // started within half a minute
			calls++
		}
	}
	return calls
}

func (l longCalls) poll(number int) policy.Input {
	calls := 0.0
	for second := 10*number - 9; second <= 10*number; second++ {
		calls += l.ended(second)
	}
	in := capped(doing(10, calls/10, number))
	in.Reading.Ready, in.Reading.PublishRate = backlog.Known(200), backlog.Known(0.1)
	in.Reading.LeastReady, in.Reading.LeastUndispatched = backlog.Known(200), backlog.Known(200)
	return in
}

// raised is the plateau of long calls after a raise from five replicas, by polls.
func (l longCalls) raised(t *testing.T, polls int) []policy.Plateau {
	t.Helper()
	state := policy.State{Capacity: covering(0.95), Arrivals: arrivals(0.1)}
	state.Capacity.MessagesPerSecond = 1.0 / 300
	before := l.poll(0)
	before.CurrentReplicas, before.Reading.Consumers, before.Spec.MaxReplicas = 5, backlog.Known(5), 10
	_, state = policy.Decide(before, state)
	require.Equal(t, policy.Verifying, state.Plateau.Stage)
	var all []policy.Plateau
	for poll := 1; poll <= polls; poll++ {
		_, state = policy.Decide(l.poll(poll), state)
		all = append(all, state.Plateau)
	}
	return all
}

// In most polls of ten seconds no call ends, which says nothing.
func TestAVerdictOnLongCallsWaitsForEnoughOfThem(t *testing.T) {
	for poll, p := range (longCalls{}).raised(t, 360) {
		require.Zero(t, p.Ceiling(), "after %d s", 10*poll)
	}
	first := 0
	for poll, p := range (longCalls{limited: true}).raised(t, 360) {
		if first == 0 && p.Ceiling() > 0 {
			first = 10 * poll
			require.LessOrEqual(t, p.Ceiling(), int32(7), "five process as much")
			require.GreaterOrEqual(t, p.Ceiling(), int32(4))
		}
	}
	require.Greater(t, first, 600, "ten calls")
}

// A scale-up came before a poll showed the pool saturated; the first such polls come while the new replicas start. On a
// real Pulsar nothing was learned from them, and 46/s were learned for replicas that process 50/s until there was a
// backlog again.
func TestAPoolIsLearnedFromUntilTheFirstOfTheNewReplicasConsumes(t *testing.T) {
	before := with(policy.Plateau{
		Stage: policy.Verifying, Since: noon(), Reference: pool(5, 460), Each: 92, Replicas: 10,
	})
	before.Capacity = learned(92)
	before.Capacity.Variance = 0.01
	starting := func(consumers float64) policy.State {
		return after(before, 2, func(poll int) policy.Input {
			in := doing(10, 500, poll)
			in.Reading.Consumers = backlog.Known(consumers)
			return in
		})
	}
	learned := starting(5)
	require.Equal(t, policy.Verifying, learned.Plateau.Stage)
	require.Greater(t, learned.Capacity.MessagesPerSecond, 95.0)
	require.Greater(t, learned.Capacity.Coverage, 0.0)
	require.InDelta(t, 92, starting(6).Capacity.MessagesPerSecond, 1e-9, "the output may be an external limit now")
}

// lifted is the number of seconds from the end of an external limit, which kept a pool below a ceiling for some
// minutes, until messages no longer wait.
func lifted(t *testing.T, minutes int, ceiling int32, limit float64, dead int) int {
	t.Helper()
	const load, one, hour = 900.0, 50.0, 3600
	p := newPlant(ceiling, load, one).knowing()
	p.limit, p.dead, p.queue = limit, dead, 100_000
	p.state.Plateau = policy.Plateau{
		Stage: policy.Limited, Replicas: ceiling, Reference: pool(20, limit), Each: one, Since: noon(),
		Pause: 4 * time.Minute,
	}
	p.run(60 * minutes)
	require.InDelta(t, ceiling, p.state.Plateau.Ceiling(), float64(ceiling)/4+1)
	p.queue, p.limit = 20*load, math.Inf(1)
	for second := p.poll; second <= 6*hour; second += p.poll {
		if p.run(p.poll); p.queue < 10*load {
			return second
		}
	}
	return math.MaxInt
}

func TestALiftedLimitIsNoticed(t *testing.T) {
	tests := map[string]struct {
		ceiling int32
		limit   float64
		dead    int
	}{
		"all replicas consume":                       {14, 600, 0},
		"10 of 11 replicas consume":                  {11, 500, 1},
		"no slack: the replicas do all of the limit": {12, 600, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for minutes := 240; minutes < 300; minutes += 12 {
				require.LessOrEqual(t, lifted(t, minutes, tt.ceiling, tt.limit, tt.dead), 20*60)
			}
		})
	}
}
