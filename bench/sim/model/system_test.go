// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func scenario() Scenario {
	return Scenario{
		Name: "test", Seconds: 600, Rate: Constant(100), Capacity: Constant(50), Objective: time.Minute,
		Initial: 3, Min: 1, Max: 20, Start: 20 * time.Second,
	}
}

// run steps to the end, scaling as scale returns.
func run(system *System, scale func(second int) (replicas int, ok bool)) {
	for range system.scenario.Seconds {
		system.Step()
		if replicas, ok := scale(system.Second()); ok {
			system.Scale(replicas)
		}
	}
}

func still(int) (int, bool) { return 0, false }

// processed messages of all current replicas.
func processed(system *System) float64 {
	sum := 0.0
	for _, r := range system.set.replicas {
		sum += r.processed
	}
	return sum
}

func TestNoMessageIsLostOrInvented(t *testing.T) {
	tests := map[string]func(*Scenario){
		"in a pool that keeps up":                  func(*Scenario) {},
		"in one that does not":                     func(s *Scenario) { s.Initial = 1 },
		"with small receive queues":                func(s *Scenario) { s.ReceiveQueue = 7 },
		"with delayed messages":                    func(s *Scenario) { s.Delayed, s.Delay = 0.5, time.Minute },
		"in partitions of their own":               func(s *Scenario) { s.Type, s.Partitions = backlog.Failover, 7 },
		"in keys of their own":                     func(s *Scenario) { s.Type = backlog.KeyShared },
		"while the downstream limit applies":       func(s *Scenario) { s.Downstream = Constant(60) },
		"while every change restarts all replicas": func(s *Scenario) { s.RestartsOnScale = true },
		"while replicas crash":                     func(s *Scenario) { s.Crashing = 0.5 },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			s := scenario()
			change(&s)
			system := New(s, 7)
			done, before := 0.0, map[*replica]float64{}
			run(system, func(second int) (int, bool) {
				for _, r := range system.set.replicas { // a restart resets the count
					if r.processed >= before[r] {
						done += r.processed - before[r]
					} else {
						done += r.processed
					}
					before[r] = r.processed
				}
				return []int{3, 9, 2, 5}[second/100%4], second%100 == 0
			})
			left := system.subscription.queued() + system.subscription.delayed.total
			require.InDelta(t, system.score.Messages, done+left, 1e-3*system.score.Messages)
		})
	}
}

func TestEqualSeedsGiveEqualLoads(t *testing.T) {
	one, other := New(scenario(), 3), New(scenario(), 3)
	run(one, still)
	run(other, func(second int) (int, bool) { return 1 + second%10, second%50 == 0 })
	require.InDelta(t, one.score.Messages, other.score.Messages, 0)
	require.InDelta(t, 60000, one.score.Messages, 1500, "100 a second for 10 minutes")
}

func TestARunCanBeRepeated(t *testing.T) {
	scores := [2]Score{}
	for i := range scores {
		system := New(scenario(), 11)
		run(system, func(second int) (int, bool) { return 1 + second/60%5, second%60 == 0 })
		scores[i] = system.Score()
	}
	require.Equal(t, scores[0], scores[1])
}

func TestReplicasDoWhatTheirCapacityAllows(t *testing.T) {
	s := scenario()
	s.Rate, s.Spread = Constant(1000), 1e-9
	system := New(s, 1)
	run(system, still)
	require.InDelta(t, 3*50*600, processed(system), 200, "three replicas of 50 a second")
	require.InDelta(t, 3*600, system.Score().ReplicaSeconds, 0)
}

func TestANewReplicaConsumesAfterItsStart(t *testing.T) {
	system := New(scenario(), 5)
	system.Step()
	system.Scale(4)
	require.Equal(t, 4, system.Replicas())
	require.Len(t, system.set.active, 3)
	for range 120 {
		system.Step()
	}
	require.Len(t, system.set.active, 4)
}

func TestLateIsOlderThanTheObjective(t *testing.T) {
	s := scenario()
	s.Initial, s.Spread = 1, 1e-9 // half of the arrivals can be processed
	system := New(s, 1)
	run(system, still)
	score := system.Score()
	// At second t the message in work arrived at t/2, so it is older than 60 s from second 120 on: half of what was
	// finished after that, and what waits for longer, which together arrived from second 60 to 540.
	require.InDelta(t, 480.0/600, score.LateShare(), 0.02)
	require.InDelta(t, 600-120, score.ViolationSeconds, 10)
}

func TestFlapsAreUpsSoonAfterADown(t *testing.T) {
	system := New(scenario(), 1)
	run(system, func(second int) (int, bool) {
		replicas, ok := map[int]int{100: 2, 200: 3, 300: 4}[second]
		return replicas, ok
	})
	require.Equal(t, 3, system.Score().Actions)
	require.Equal(t, 2, system.Score().Flaps)
}

func TestOnlyWhatComesAfterTheFirstScoredSecondCounts(t *testing.T) {
	count := func(from int) Score {
		s := scenario()
		s.ScoredFrom = from
		system := New(s, 1)
		run(system, func(second int) (int, bool) {
			replicas, ok := map[int]int{100: 2, 200: 3, 300: 4}[second]
			return replicas, ok
		})
		return system.Score()
	}
	all, since := count(0), count(250)
	require.Equal(t, 1, since.Actions, "of %d", all.Actions)
	require.Len(t, since.Trace, len(all.Trace), "pictures have all of it")
	left := float64(len(all.Trace)-250) / float64(len(all.Trace))
	require.InEpsilon(t, all.Messages*left, since.Messages, 0.05)
	require.Less(t, since.Finished, all.Finished)
	require.InDelta(t, all.ReplicaSeconds-sum(all.Trace[:250]), since.ReplicaSeconds, 0)
}

func sum(replicas []int32) (total float64) {
	for _, n := range replicas {
		total += float64(n)
	}
	return total
}

func TestSettlingIsTheLastTimeOutOfBounds(t *testing.T) {
	s := Score{Trace: []int32{1, 1, 1, 4, 4, 6, 6, 6, 6, 6}, Oldest: make([]int32, 10)}
	require.InDelta(t, 3, s.Settling(2, 10, time.Minute), 0)
	s.Oldest[9] = 61
	require.True(t, math.IsNaN(s.Settling(2, 10, time.Minute)), "what is still late has not settled")
}

func TestSamplesMatchPulsar(t *testing.T) {
	tests := map[string]struct {
		change func(*Scenario)
		check  func(*testing.T, *System, backlog.SubscriptionSample)
	}{
		"entries are batches": {
			func(s *Scenario) { s.Batch, s.Initial = 10, 1 },
			func(t *testing.T, system *System, s backlog.SubscriptionSample) {
				t.Helper()
				require.InDelta(t, system.subscription.queued()/10, s.BacklogEntries, 1)
			},
		},
		"delayed messages are in the backlog": {
			func(s *Scenario) { s.Delayed, s.Delay = 0.5, time.Hour },
			func(t *testing.T, system *System, s backlog.SubscriptionSample) {
				t.Helper()
				require.InDelta(t, 30000, s.DelayedMessages, 1000)
				require.GreaterOrEqual(t, s.BacklogEntries, s.DelayedMessages)
			},
		},
		"poison stays for ever and is tried again": {
			func(s *Scenario) { s.Poison = 0.1 },
			func(t *testing.T, system *System, s backlog.SubscriptionSample) {
				t.Helper()
				require.InDelta(t, 6000, system.subscription.poisoned, 300)
				require.GreaterOrEqual(t, float64(s.BacklogEntries), system.subscription.poisoned)
				require.Greater(t, float64(s.DeliveredMessages), system.score.Messages)
			},
		},
		"Failover counts nothing as unacknowledged": {
			func(s *Scenario) { s.Type, s.Initial = backlog.Failover, 1 },
			func(t *testing.T, _ *System, s backlog.SubscriptionSample) {
				t.Helper()
				require.Zero(t, s.UnackedMessages)
			},
		},
		"Shared does": {
			func(s *Scenario) { s.Initial = 1 },
			func(t *testing.T, _ *System, s backlog.SubscriptionSample) {
				t.Helper()
				require.InDelta(t, 1000, s.UnackedMessages, 60, "a full receive queue")
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := scenario()
			tt.change(&s)
			system := New(s, 2)
			run(system, still)
			sample, err := system.TopicSample(0)
			require.NoError(t, err)
			require.Len(t, sample.Partitions, 1)
			tt.check(t, system, sample.Partitions[0].Subscriptions[0])
		})
	}
}

func TestFaultsAreErrorsAsTheSourceGivesThem(t *testing.T) {
	s := scenario()
	s.Partitions, s.Outages, s.Partial = 4, Spans{{From: 1, To: 2}}, Spans{{From: 2, To: 3}}
	system := New(s, 1)
	system.Step()
	_, err := system.TopicSample(0)
	require.NoError(t, err)
	system.Step()
	_, err = system.TopicSample(0)
	require.ErrorIs(t, err, backlog.ErrUnreachable)
	system.Step()
	sample, err := system.TopicSample(0)
	require.NoError(t, err)
	require.ErrorIs(t, sample.Incomplete, backlog.ErrPartial)
	require.Len(t, sample.Partitions, 2)
}

func TestFifoKeepsTheOrderOfArrival(t *testing.T) {
	var f, taken queue
	f.push(1, 5)
	f.push(2, 5)
	f.pop(7, func(p cohort) { taken.push(p.at, p.count) })
	require.Equal(t, []cohort{{1, 5}, {2, 2}}, taken.cohorts)
	f.push(3, 1)
	f.putBack(&taken)
	require.InDelta(t, 11, f.total, dust)
	at, ok := f.oldest()
	require.True(t, ok)
	require.Equal(t, 1, at)
	var all []cohort
	f.pop(100, func(p cohort) { all = append(all, p) })
	require.Equal(t, []cohort{{1, 5}, {2, 5}, {3, 1}}, all)
	_, ok = f.oldest()
	require.False(t, ok)
	require.Zero(t, f.total)
}

func TestAScenarioMaySetStartAndMeasuredShare(t *testing.T) {
	s := scenario()
	s.Start = 19500 * time.Millisecond
	s.Rate, s.Spread, s.StartSpread, s.WarmUp, s.Measured = Constant(1000), 1e-9, 1e-9, 100, 0.6
	system := New(s, 1)
	for range 10 {
		system.Step()
	}
	system.Scale(4)
	before := system.InstancesSample()
	for range 19 {
		system.Step()
	}
	after := system.InstancesSample()
	require.InDelta(t, 19*0.6, (*after.Instances[0].BusyTime - *before.Instances[0].BusyTime).Seconds(), 1e-6)
	require.Len(t, after.Instances, 3)
	system.Step()
	require.Len(t, system.InstancesSample().Instances, 4, "after exactly the start time")
	for range 10 {
		system.Step()
	}
	require.InDelta(t, 50*(0.5*11+0.005*55), system.set.replicas[3].processed, 1, "from half its speed")
}

func TestExactArrivalsHaveNoLuck(t *testing.T) {
	s := scenario()
	s.Exact, s.Rate = true, func(second float64) float64 { return float64(int(second) % 3) }
	system := New(s, 3)
	run(system, still)
	require.InDelta(t, 600, system.score.Messages, 1e-6)
	require.InDelta(t, 600, system.topics.published[0], 1e-6)
}
