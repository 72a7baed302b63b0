// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpeedIsAFactorOfAReplicasCapacity(t *testing.T) {
	tests := map[string]struct {
		speed func(number, second, age int) float64
		// finished by one replica in 600 s.
		finished float64
	}{
		"by number":         {func(number, _, _ int) float64 { return []float64{0.4, 1}[number] }, 0.4 * 50 * 600},
		"by second":         {func(_, second, _ int) float64 { return []float64{0.5, 1}[second/300] }, 0.75 * 50 * 600},
		"by age":            {func(_, _, age int) float64 { return 1 / (1 + float64(age-20)/600) }, 0.693 * 50 * 600},
		"the same for each": {func(int, int, int) float64 { return 1 }, 50 * 600},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := scenario()
			s.Initial, s.Spread, s.Speed = 1, 1e-9, tt.speed
			system := New(s, 3)
			run(system, still)
			require.InDelta(t, tt.finished, processed(system), 60)
		})
	}
}

func TestTheCapacityIsTheMeanUnlessTheSlowestHoldMoreThanTheObjective(t *testing.T) {
	s := scenario()
	s.Initial, s.Speed = 2, func(number, second, _ int) float64 {
		if number == 0 && second%100 < 50 {
			return 0.2
		}
		return 1
	}
	capacity := func() float64 {
		system := New(s, 3)
		system.Step()
		return system.Capacity(0)
	}
	require.InDelta(t, 50*(0.6+1)/2, capacity(), 1e-9, "a pause is part of the mean")
	s.ReceiveQueue = 50 * 0.6 * 61
	require.InDelta(t, 50*0.6, capacity(), 1e-9, "61 s of work, and 60 s are the objective")
	s.Speed = nil
	require.InDelta(t, 50, capacity(), 0)
}

// calls of one replica with two a second on average.
func calls(length func(*rand.Rand) float64) Scenario {
	s := scenario()
	s.Capacity, s.Initial, s.Spread, s.Calls = Constant(2), 1, 1e-9, length
	return s
}

func TestCallsTakeAsLongAsTheyAreDrawn(t *testing.T) {
	tests := map[string]func(*rand.Rand) float64{
		"all the same": func(*rand.Rand) float64 { return 1 },
		"two lengths":  func(random *rand.Rand) float64 { return []float64{0.5, 1.5}[random.IntN(2)] },
		"most at once": func(random *rand.Rand) float64 { return []float64{0, 0, 0, 0, 5}[random.IntN(5)] },
	}
	for name, length := range tests {
		t.Run(name, func(t *testing.T) {
			system := New(calls(length), 3)
			run(system, still)
			require.InDelta(t, 2*600, processed(system), 130)
			require.InDelta(t, measuredShare*600, system.set.replicas[0].busy, 3, "it never waits")
			left := system.subscription.queued()
			require.InDelta(t, system.score.Messages, system.score.Finished+left, 1e-6)
		})
	}
}

func TestACallCountsWhenItEnds(t *testing.T) {
	s := calls(func(*rand.Rand) float64 { return 60 }) // 30 s
	s.Rate = func(second float64) float64 { return max(0, 1-second) }
	s.Exact = true
	system := New(s, 3)
	seen := func() (received, processed int64, busy time.Duration) {
		sample := system.InstancesSample().Instances[0]
		return sample.Received, sample.Processed, *sample.BusyTime
	}
	for range 29 {
		system.Step()
	}
	received, processed, busy := seen()
	require.Equal(t, []int64{1, 0, 0}, []int64{received, processed, int64(busy)})
	system.Step()
	received, processed, busy = seen()
	require.Equal(t, []int64{1, 1}, []int64{received, processed})
	require.InDelta(t, measuredShare*30, busy.Seconds(), 0.1)
}

func TestACallThatARestartEndsIsDoneAgain(t *testing.T) {
	s := calls(func(*rand.Rand) float64 { return 60 }) // 30 s, and a crash after 20 s
	s.Rate, s.Exact, s.Crashing = func(second float64) float64 { return max(0, 1-second) }, true, 1
	system := New(s, 3)
	run(system, still)
	require.Zero(t, processed(system))
	require.InDelta(t, 1, system.subscription.queued(), 0)
}

func TestWholeMessagesAreHandedOutInTurn(t *testing.T) {
	s := calls(func(*rand.Rand) float64 { return 600 })
	s.Initial, s.ReceiveQueue, s.Rate, s.Exact = 3, 2, func(second float64) float64 { return max(0, 7-7*second) }, true
	system := New(s, 3)
	system.Step()
	for _, r := range system.set.replicas {
		require.InDelta(t, 2, r.queue.total, 0)
	}
	require.InDelta(t, 1, system.subscription.waiting[freeQueue].total, 0)
}
