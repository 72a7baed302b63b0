// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScenariosAreComplete(t *testing.T) {
	names := map[string]bool{}
	for _, s := range append(Named(), HeldOut(7, 200)...) {
		require.False(t, names[s.Name], s.Name)
		names[s.Name] = true
		require.Positive(t, s.Seconds, s.Name)
		require.Positive(t, s.Objective, s.Name)
		require.Positive(t, s.Start, s.Name)
		require.Greater(t, s.Max, s.Min, s.Name)
		for second := 0; second < s.Seconds; second += 30 {
			require.GreaterOrEqual(t, s.Rate(float64(second)), 0.0, s.Name)
			require.Positive(t, s.Capacity(float64(second)), s.Name)
			if s.Speed != nil {
				require.Positive(t, s.Speed(3, second, second), s.Name)
			}
		}
		for _, step := range s.Steps {
			require.Less(t, step, s.Seconds, s.Name)
		}
	}
}

func TestHeldOutScenariosFollowFromTheSeed(t *testing.T) {
	one, again, other := HeldOut(3, 60), HeldOut(3, 60), HeldOut(4, 60)
	same := 0
	for i := range one {
		for second := range 100 {
			at := float64(second * 36)
			require.InDelta(t, one[i].Rate(at), again[i].Rate(at), 0)
			require.InDelta(t, one[i].Capacity(at), again[i].Capacity(at), 0)
		}
		without := func(s Scenario) Scenario {
			s.Rate, s.Capacity = nil, nil
			return s
		}
		require.Equal(t, without(one[i]), without(again[i]))
		require.Equal(t, without(one[i]), without(HeldOut(3, i+1)[i]), "it does not depend on how many are drawn")
		if one[i].Objective == other[i].Objective {
			same++
		}
	}
	require.Less(t, same, 10)
}

func TestNoHeldOutLoadNeedsMoreThanMaxReplicas(t *testing.T) {
	check := func(seed uint64) {
		for _, s := range HeldOut(seed, 100) {
			most := 0.0
			for second := 0; second < s.Seconds; second += 10 {
				most = max(most, s.Rate(float64(second))/s.Capacity(float64(second)))
			}
			require.LessOrEqual(t, most, float64(s.Max), "%s of seed %d", s.Name, seed)
		}
	}
	for seed := range uint64(50) {
		check(seed)
	}
	// Both once drew an infeasible load, of 106 and 107 replicas, which is now redrawn.
	check(860117)
	check(5551)
}

// The documented ranges of HeldOut that can be checked from a scenario.
func TestHeldOutLoadsAreWithinTheirDocumentedRanges(t *testing.T) {
	const count = 2000
	within := func(low, value, high float64, what string) {
		require.GreaterOrEqual(t, value, low, what)
		require.LessOrEqual(t, value, high, what)
	}
	steps, dropped, usual, slow, fast := 0, 0, 0, 0, 0
	for _, s := range HeldOut(17, count) {
		capacity := s.Capacity(0)
		within(2, capacity, 500, "capacity")
		within(0, s.Noise, 0.4, "noise")
		within(20, s.Objective.Seconds(), 180, "objective")
		within(8, s.Start.Seconds(), 78, "start")
		within(0.3, s.CPU, 1, "share of a processor")
		require.Equal(t, []int{1, 1, 100, 3600}, []int{s.Initial, s.Min, s.Max, s.Seconds})
		if s.ReceiveQueue == 0 {
			usual++ // the model's default
		} else {
			require.InDelta(t, min(1000, max(1, 20*capacity)), s.ReceiveQueue, 0.5, "20 s of work")
		}
		lowest, highest := math.Inf(1), 0.0
		for second := 0; second < s.Seconds; second += 10 {
			needs := s.Rate(float64(second)) / capacity
			lowest, highest = min(lowest, needs), max(highest, needs)
		}
		within(0.5-1e-9, lowest, 8*6, "least replicas")
		within(0.5, highest, 8*6, "most replicas")
		require.LessOrEqual(t, highest/lowest, 6+1e-9)
		if len(s.Steps) > 0 {
			steps++
			within(600, float64(s.Steps[0]), 1200, "step up")
			require.Equal(t, 1500, s.Steps[1]-s.Steps[0])
		}
		if drop := s.Capacity(3599) / capacity; drop < 1 {
			dropped++
			within(0.4, drop, 0.8, "of the capacity")
			require.InDelta(t, capacity, s.Capacity(1199), 0, "until the 20th minute")
			require.InDelta(t, drop*capacity, s.Capacity(2400), 1e-9, "from the 40th at the latest")
		}
		if capacity < 10 {
			slow++
		}
		if capacity > 100 {
			fast++
		}
	}
	part := func(n int) float64 { return float64(n) / count }
	require.InDelta(t, 0.2, part(steps), 0.03, "one of five shapes")
	require.InDelta(t, 0.25, part(dropped), 0.03)
	require.InDelta(t, 0.25, part(usual), 0.03)
	require.InDelta(t, math.Log(5)/math.Log(250), part(slow), 0.03, "evenly in its logarithm")
	require.InDelta(t, math.Log(5)/math.Log(250), part(fast), 0.03)
}

func TestPipelinesFollowFromTheSeed(t *testing.T) {
	drawn, again := PipelinesOf(7, 4), PipelinesOf(7, 4)
	lengths := map[int]int{}
	for i, stages := range drawn {
		lengths[len(stages)]++
		for j, one := range stages {
			require.Equal(t, again[i][j].Name, one.Name)
			require.InDelta(t, again[i][j].Capacity(0), one.Capacity(0), 0)
			require.Equal(t, j == 0, one.Rate != nil, "only the first has a load of its own")
			if j > 0 {
				require.InDelta(t, math.Log(stages[0].Capacity(0)), math.Log(one.Capacity(0)), math.Log(3.1))
			}
		}
	}
	require.Equal(t, map[int]int{2: 4, 3: 4, 5: 4}, lengths)
}
