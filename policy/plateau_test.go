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

// justChanged is a state in which the replicas reached their number a moment ago.
func justChanged(state policy.State) policy.State {
	state.Start = policy.Start{Replicas: 5, Changed: noon()}
	return state
}

func TestAnEpisode(t *testing.T) {
	open := policy.Plateau{Open: true, Since: noon(), From: 5, Did: 500, Each: 100, Asked: 10}
	same := func(current int32, processed float64) func(int) policy.Input {
		return func(poll int) policy.Input { return doing(current, processed, poll) }
	}
	tests := map[string]struct {
		state policy.State
		polls int
		in    func(poll int) policy.Input
		check func(*testing.T, policy.Plateau)
	}{
		"opens when a pool with work all the time is raised": {
			with(policy.Plateau{}), 1, same(5, 500),
			func(t *testing.T, p policy.Plateau) {
				require.True(t, p.Open)
				require.Equal(t, []float64{5, 500}, []float64{p.From, p.Did})
				require.InEpsilon(t, 100, p.Each, 0.01)
			},
		},
		"does not open when a raise is held": {justChanged(with(policy.Plateau{})), 1, func(poll int) policy.Input {
			in := doing(5, 500, poll)
			in.Reading.Type = backlog.KeyShared
			in.Reading.Ready = backlog.Known(25_000)
			return in
		}, func(t *testing.T, p policy.Plateau) { require.False(t, p.Open) }},
		"does not open at maxReplicas": {with(policy.Plateau{}), 1, func(poll int) policy.Input {
			in := doing(5, 500, poll)
			in.Spec.MaxReplicas = 5
			return in
		}, func(t *testing.T, p policy.Plateau) { require.False(t, p.Open) }},
		"does not open soon after a false alarm": {
			with(policy.Plateau{Quiet: noon().Add(time.Minute)}), 1, same(5, 500),
			func(t *testing.T, p policy.Plateau) {
				require.False(t, p.Open)
			},
		},
		"continues after one good poll": {with(open), 1, same(10, 900), func(t *testing.T, p policy.Plateau) {
			require.True(t, p.Open)
			require.Equal(t, 1, p.Good)
		}},
		"continues while some new replicas do not consume": {with(open), 5, func(poll int) policy.Input {
			in := doing(10, 500, poll)
			in.Reading.Consumers = backlog.Known(7)
			return in
		}, func(t *testing.T, p policy.Plateau) {
			require.True(t, p.Open)
			require.Zero(t, p.Bad)
		}},
		"restarts if each became slower before the new ones consume": {
			with(open), 2,
			func(poll int) policy.Input {
				if poll == 1 {
					in := doing(10, 250, poll)
					in.Reading.Consumers = backlog.Known(5)
					return in
				}
				return doing(10, 480, poll)
			}, func(t *testing.T, p policy.Plateau) {
				require.Equal(t, []float64{5, 250}, []float64{p.From, p.Did})
				require.Equal(t, 1, p.Good, "5 more do 230 more, of 250")
			},
		},
		"ends with a ceiling if all processed less before and since": {
			with(open), 4,
			func(poll int) policy.Input {
				in := doing(10, 400, poll)
				if poll == 1 {
					in.Reading.Consumers = backlog.Known(5)
				}
				return in
			}, func(t *testing.T, p policy.Plateau) { require.Equal(t, int32(5), p.Ceiling, "400 / (0.9 x 100)") },
		},
		"compares with the replicas that consume so far": {with(open), 3, func(poll int) policy.Input {
			in := doing(10, []float64{690, 430, 430}[poll-1], poll)
			in.Spec.MaxReplicas = 10
			if poll == 1 {
				in.Reading.Consumers = backlog.Known(7)
			}
			return in
		}, func(t *testing.T, p policy.Plateau) {
			require.False(t, p.Open, "10 do less than 7 did: each became slower")
			require.Zero(t, p.Ceiling)
		}},
		"ends if replicas keep up and the backlog is in receive queues": {with(open), 1, func(poll int) policy.Input {
			in := doing(10, 510, poll)
			in.Spec.MaxReplicas = 10
			in.Reading.LeastUndispatched = backlog.Known(0)
			return in
		}, func(t *testing.T, p policy.Plateau) {
			require.False(t, p.Open)
			require.Zero(t, p.Ceiling)
		}},
		"continues after two bad polls": {with(open), 2, same(10, 500), func(t *testing.T, p policy.Plateau) {
			require.True(t, p.Open)
			require.Equal(t, 2, p.Bad)
		}},
		"ends with a ceiling after three bad polls": {with(open), 3, same(10, 500), func(t *testing.T, p policy.Plateau) {
			require.Equal(t, int32(6), p.Ceiling, "500 / (0.9 x 100)")
			require.Equal(t, 4*time.Minute, p.Block)
			require.Equal(t, []float64{500, 10}, []float64{p.Before, p.BeforeN})
		}},
		"counts only consecutive bad polls": {with(open), 4, func(poll int) policy.Input {
			return doing(10, []float64{500, 500, 900, 500}[poll-1], poll)
		}, func(t *testing.T, p policy.Plateau) {
			require.Zero(t, p.Ceiling)
			require.Equal(t, 1, p.Bad)
		}},
		"continues if one poll shows that more do less": {with(open), 1, same(10, 400), func(t *testing.T, p policy.Plateau) {
			require.True(t, p.Open)
			require.Zero(t, p.Bad)
		}},
		"ends when more do less, for each became slower": {
			with(open), 2, same(10, 400),
			func(t *testing.T, p policy.Plateau) {
				require.False(t, p.Open)
				require.Zero(t, p.Ceiling)
			},
		},
		"keeps the block of an earlier ceiling": {
			with(policy.Plateau{Open: true, Since: noon(), From: 5, Did: 500, Each: 100, Block: 40 * time.Minute}), 3, same(10,
				500),
			func(t *testing.T, p policy.Plateau) { require.Equal(t, 40*time.Minute, p.Block) },
		},
		"does not change the capacity": {with(open), 2, same(10, 500), func(*testing.T, policy.Plateau) {}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state := after(test.state, test.polls, test.in)
			test.check(t, state.Plateau)
			if test.state.Plateau.Open {
				require.InDelta(t, 100, state.Capacity.MessagesPerSecond, 1e-9)
			}
		})
	}
}

func TestReplicasThatHelpAreVerified(t *testing.T) {
	state := after(with(policy.Plateau{Open: true, Since: noon(), From: 5, Did: 500, Each: 100, Asked: 10}), 2,
		func(poll int) policy.Input {
			in := doing(10, 900, poll)
			in.Spec.MaxReplicas = 10 // so that no other episode opens at once
			return in
		})
	require.False(t, state.Plateau.Open)
	require.Zero(t, state.Plateau.Ceiling)
}

func TestACeiling(t *testing.T) {
	found := policy.Plateau{Ceiling: 6, Before: 500, BeforeN: 10, Since: noon(), Block: 10 * time.Minute}
	tests := map[string]struct {
		plateau policy.Plateau
		polls   int
		in      func(poll int) policy.Input
		want    policy.Plateau
	}{
		"stays while the output is equal": {
			found, 20, func(poll int) policy.Input { return doing(6, 500, poll) },
			func() policy.Plateau {
				p := found
				p.Checked = 3
				return p
			}(),
		},
		"is lifted after three polls with more output": {
			found, 3, func(poll int) policy.Input { return doing(6, 541, poll) },
			policy.Plateau{Block: 10 * time.Minute},
		},
		"stays after one poll with more output": {
			found, 4,
			func(poll int) policy.Input { return doing(6, []float64{541, 541, 500, 541}[poll-1], poll) }, func() policy.Plateau {
				p := found
				p.Checked, p.More = 3, 1
				return p
			}(),
		},
		"is lifted without a backlog": {found, 1, func(poll int) policy.Input {
			in := doing(6, 500, poll)
			in.Reading.Ready, in.Reading.LeastReady, in.Reading.LeastUndispatched = backlog.Known(
				10), backlog.Known(0), backlog.Known(0)
			return in
		}, policy.Plateau{Block: 10 * time.Minute}},
		"expires when it could not be checked": {
			policy.Plateau{Ceiling: 6, Before: 500, BeforeN: 10, Since: ago(26 * time.Minute), Block: 10 * time.Minute},
			1,
			func(poll int) policy.Input {
				in := doing(6, 500, poll)
				in.Reading.Instances.Busy = backlog.Known(0.5)
				return in
			},
			policy.Plateau{Block: 10 * time.Minute},
		},
		"was a false alarm when fewer do less": {
			found, 3, func(poll int) policy.Input { return doing(6, 350, poll) }, policy.Plateau{
				Block: 10 * time.Minute,
				Quiet: noon().Add(30*time.Minute + 30*time.Second),
			},
		},
		"is probed a quarter higher after its block": {
			policy.Plateau{Ceiling: 6, Before: 500, BeforeN: 10, Since: ago(11 * time.Minute), Block: 10 * time.Minute},
			1,
			func(poll int) policy.Input { return doing(6, 500, poll) },
			policy.Plateau{
				Ceiling: 8, Before: 500, BeforeN: 10, Since: ago(11 * time.Minute), Block: 10 * time.Minute,
				Probing: true,
			},
		},
		"returns after a failed probe, for longer": {
			policy.Plateau{
				Ceiling: 8, Before: 500, BeforeN: 10, Since: ago(11 * time.Minute), Block: 10 * time.Minute,
				Probing: true,
			},
			3,
			func(poll int) policy.Input { return doing(8, 500, poll) },
			policy.Plateau{
				Ceiling: 6, Before: 500, BeforeN: 10, Since: noon().Add(30 * time.Second), Block: 15 * time.Minute,
				Checked: 3,
			},
		},
		"blocks a quarter of an hour at most": {
			policy.Plateau{
				Ceiling: 8, Before: 500, BeforeN: 10, Since: ago(15 * time.Minute), Block: 14 * time.Minute, Probing: true,
				Checked: 2,
			},
			1,
			func(poll int) policy.Input { return doing(8, 500, poll) },
			policy.Plateau{
				Ceiling: 6, Before: 500, BeforeN: 10, Since: noon().Add(10 * time.Second), Block: 15 * time.Minute,
				Checked: 3,
			},
		},
		"is lifted by a probe that processes more": {
			policy.Plateau{
				Ceiling: 8, Before: 500, BeforeN: 10, Since: ago(11 * time.Minute), Block: 10 * time.Minute,
				Probing: true,
			},
			3,
			func(poll int) policy.Input { return doing(8, 600, poll) },
			policy.Plateau{Block: 10 * time.Minute},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state := with(test.plateau)
			for poll := 1; poll <= test.polls; poll++ {
				in := test.in(poll)
				in.Spec.MaxReplicas = in.CurrentReplicas // so that no episode opens when it is lifted
				_, state = policy.Decide(in, state)
			}
			require.Equal(t, test.want, state.Plateau)
		})
	}
}

func TestReplicasGrowToFourTimesTheRequestUntilVerified(t *testing.T) {
	state := with(policy.Plateau{Open: true, Since: noon(), From: 5, Did: 500, Each: 100, Asked: 8})
	in := doing(8, 700, 1)
	in.Reading.Consumers = backlog.Known(6)
	in.Reading.Ready = backlog.Known(200_000)
	decision, _ := policy.Decide(in, state)
	require.Equal(t, int32(32), decision.Replicas)
	require.Equal(t, policy.HoldUnverified, decision.Hold.Reason)
	state.Plateau.Bad = 1
	in.CurrentReplicas, in.Reading.ProcessRate = 10, backlog.Known(520)
	decision, _ = policy.Decide(in, state)
	require.Equal(t, int32(10), decision.Replicas, "not after a poll that showed no gain")
}

// A scale-up came before a poll showed the pool saturated; the first such polls come while the new replicas start. On a
// real Pulsar nothing was learned from them, and 46/s were learned for replicas that process 50/s until there was a
// backlog again.
func TestAPoolIsLearnedFromUntilTheFirstOfTheNewReplicasConsumes(t *testing.T) {
	before := with(policy.Plateau{Open: true, Since: noon(), From: 5, Did: 460, Each: 92, Asked: 10})
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
	require.True(t, learned.Plateau.Open)
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
	p.state.Plateau = policy.Plateau{Ceiling: ceiling, Before: limit, BeforeN: 20, Since: noon(), Block: 4 * time.Minute}
	p.run(60 * minutes)
	require.InDelta(t, ceiling, p.state.Plateau.Ceiling, float64(ceiling)/4+1)
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
