// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// facts are what a run of the step would measure.
func facts() measured {
	return measured{StartSeconds: known(20.0), CapacityPerReplica: known(50.0), CapacitySpread: known(0.01)}
}

func TestTheSimulatorFollowsTheLoad(t *testing.T) {
	s, _ := find("step")
	got := simulate(s, facts())
	for _, of := range [][]float64{got.replicas, got.least, got.most, got.backlog} {
		require.Len(t, of, s.seconds())
	}
	for second, mean := range got.replicas {
		require.LessOrEqual(t, got.least[second], mean)
		require.GreaterOrEqual(t, got.most[second], mean)
	}
	require.Less(t, got.replicas[100], 3.0, "a load of 40/s for replicas of 50/s")
	require.GreaterOrEqual(t, got.least[380], 4.0, "a load of 240/s")
	require.Less(t, got.replicas[599], got.replicas[380])
	require.LessOrEqual(t, *got.low.ReplicaHours, *got.mean.ReplicaHours)
	require.GreaterOrEqual(t, *got.high.ReplicaHours, *got.mean.ReplicaHours)
	require.Greater(t, *got.mean.Actions, 1.0)
}

func TestTheSimulatorIsGivenWhatWasMeasured(t *testing.T) {
	s, _ := find("step")
	usual := simulate(s, facts())
	slower := facts()
	slower.CapacityPerReplica = known(25.0)
	require.Greater(t, *simulate(s, slower).mean.ReplicaHours, 1.5**usual.mean.ReplicaHours)
	later := facts()
	later.StartSeconds = known(100.0)
	require.Greater(t, *simulate(s, later).mean.LatePct, *usual.mean.LatePct+5)
}

func TestWhatWasNotMeasuredIsAsItWasMeantToBe(t *testing.T) {
	s, _ := find("wave")
	p := plantOf(s, measured{}, 0)
	require.InDelta(t, 50, p.Capacity(0), 1e-9)
	require.InDelta(t, 21.5, p.Start.Seconds(), 1e-9, "which is 22 s on average in whole seconds")
	require.InDelta(t, 1, p.Measured, 0)
	require.InDelta(t, none, p.WarmUp, 0)
	require.Equal(t, 3, p.Partitions)
	require.InDelta(t, 1, p.Batch, 0)
	p = plantOf(s, measured{MessagesPerEntry: known(2.5)}, 0)
	require.InDelta(t, 2.5, p.Batch, 0)
}

func TestAPhaseIsALaterBeginningOfTheSameLoad(t *testing.T) {
	s, _ := find("step")
	now, later := plantOf(s, facts(), 0), plantOf(s, facts(), 17)
	require.InDelta(t, s.rate(0), later.Rate(3), 0)
	for second := range s.seconds() {
		require.InDelta(t, now.Rate(float64(second)), later.Rate(float64(second+17)), 0)
	}
	require.Zero(t, later.Rate(float64(s.seconds()+17)), "then it is drained")
	require.Equal(t, now.Seconds+17, later.Seconds)
}

func TestASimulationCanBeRepeated(t *testing.T) {
	s, _ := find("java")
	s = s.lasting(2 * time.Minute)
	one, other := simulate(s, facts()), simulate(s, facts())
	require.Equal(t, one, other)
}

func TestFoldIsTheMeanWithItsExtremes(t *testing.T) {
	got := fold([]simRun{
		{hours: 1, late: 0, actions: 2, most: 5, replicas: []float64{1, 2}, backlog: []float64{0, 10}},
		{hours: 3, late: 4, actions: 2, most: 7, replicas: []float64{3, 2}, backlog: []float64{4, 30}},
	})
	require.Equal(t, []float64{2, 2}, got.replicas)
	require.Equal(t, []float64{1, 2}, got.least)
	require.Equal(t, []float64{3, 2}, got.most)
	require.Equal(t, []float64{2, 20}, got.backlog)
	for name, figures := range map[string][]float64{
		"hours":   {*got.low.ReplicaHours, 1, *got.mean.ReplicaHours, 2, *got.high.ReplicaHours, 3},
		"late":    {*got.low.LatePct, 0, *got.mean.LatePct, 2, *got.high.LatePct, 4},
		"actions": {*got.low.Actions, 2, *got.mean.Actions, 2, *got.high.Actions, 2},
		"most":    {*got.low.MaxReplicas, 5, *got.mean.MaxReplicas, 6, *got.high.MaxReplicas, 7},
	} {
		for i := 0; i < len(figures); i += 2 {
			require.InDelta(t, figures[i+1], figures[i], 1e-9, name)
		}
	}
}
