// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// facts are the measurements of a run of the step.
func facts() measured {
	return measured{StartSeconds: known(20.0), CapacityPerReplica: known(50.0), CapacitySpread: known(0.01)}
}

func TestTheSimulatorFollowsTheLoad(t *testing.T) {
	s, _ := find("step")
	got := simulate(s, facts(), nil)
	for _, of := range [][]float64{got.replicas, got.least, got.most, got.backlog} {
		require.Len(t, of, s.seconds())
	}
	for second, mean := range got.replicas {
		require.LessOrEqual(t, got.least[second], mean)
		require.GreaterOrEqual(t, got.most[second], mean)
	}
	require.Less(t, got.replicas[90], 3.0, "a load of 40/s for replicas of 50/s")
	require.GreaterOrEqual(t, got.least[320], 4.0, "a load of 240/s")
	require.Less(t, got.replicas[479], got.replicas[320])
	require.LessOrEqual(t, *got.Low.ReplicaHours, *got.Mean.ReplicaHours)
	require.GreaterOrEqual(t, *got.High.ReplicaHours, *got.Mean.ReplicaHours)
	require.Greater(t, *got.Mean.Actions, 1.0)
}

func TestTheSimulatorIsGivenWhatWasMeasured(t *testing.T) {
	s, _ := find("step")
	usual := simulate(s, facts(), nil)
	slower := facts()
	slower.CapacityPerReplica = known(25.0)
	require.Greater(t, *simulate(s, slower, nil).Mean.ReplicaHours, 1.5**usual.Mean.ReplicaHours)
	later := facts()
	later.StartSeconds = known(100.0)
	require.Greater(t, *simulate(s, later, nil).Mean.LatePct, *usual.Mean.LatePct+5)
}

func TestWhatWasNotMeasuredIsAsItWasMeantToBe(t *testing.T) {
	s, _ := find("wave")
	p := modelOf(s, measured{}, nil)
	require.InDelta(t, 50, p.Capacity(0), 1e-9)
	require.InDelta(t, 22.5, p.Start.Seconds(), 1e-9, "which is 22 s on average in whole seconds")
	require.InDelta(t, 1, p.Measured, 0)
	require.InDelta(t, none, p.WarmUp, 0)
	require.Equal(t, 3, p.Partitions)
	require.InDelta(t, 1, p.Batch, 0)
	p = modelOf(s, measured{MessagesPerEntry: known(2.5)}, nil)
	require.InDelta(t, 2.5, p.Batch, 0)
}

func TestTheSimulatorIsGivenWhatArrived(t *testing.T) {
	s, _ := find("step")
	meant := modelOf(s, facts(), nil)
	require.InDelta(t, 40, meant.Rate(7), 0)
	require.InDelta(t, 240, meant.Rate(200), 0)
	require.Zero(t, meant.Rate(float64(s.seconds())), "then it is drained")
	p := modelOf(s, facts(), []float64{3, 0, 5})
	require.True(t, p.Exact)
	require.InDelta(t, 3, p.Rate(0), 0)
	require.Zero(t, p.Rate(1))
	require.InDelta(t, 5, p.Rate(2), 0)
	require.InDelta(t, 40, p.Rate(3), 0)
}

func TestTheSimulatorKeepsTheTimesOfTheRealRun(t *testing.T) {
	s, _ := find("step")
	m := facts()
	m.Timetable = timetable{Polls: []float64{0.5, 10.2}, Scrapes: []float64{3, 13.5}, Syncs: []float64{5, 20}}
	for draw := range draws {
		got := m.Timetable.within(s, draw)
		require.InDelta(t, 10.2, got.Polls[1].Seconds(), 0.126)
		require.InDelta(t, got.Polls[1].Seconds()+10, got.Polls[2].Seconds(), 1e-6, "as usual after the last observation")
		require.InDelta(t, 13.5, got.Scrapes[1].Seconds(), 0.126)
		require.InDelta(t, 35, got.Syncs[2].Seconds(), 0.126)
		require.Greater(t, got.Syncs[len(got.Syncs)-1].Seconds(), s.length.Seconds()+drainSeconds-16)
	}
	got := simulate(s, m, nil)
	require.Less(t, *got.High.ReplicaHours-*got.Low.ReplicaHours,
		*got.anyTime.High.ReplicaHours-*got.anyTime.Low.ReplicaHours)

	m.Timetable.Syncs = nil
	got = simulate(s, m, nil)
	require.Equal(t, got.anyTime, got.figures, "an unknown time is random")
}

func TestAnyTimesArePollsThatWanderAndSyncsThatDoNot(t *testing.T) {
	s, _ := find("wave")
	first := map[float64]bool{}
	for draw := range draws {
		got := anyTimetable(s, draw)
		first[got.Polls[0].Seconds()] = true
		require.NotEqual(t, got.Polls[0], got.Scrapes[0])
		for i := 1; i < len(got.Polls); i++ {
			require.InDelta(t, 10, (got.Polls[i] - got.Polls[i-1]).Seconds(), 1)
		}
		for i := 1; i < len(got.Syncs); i++ {
			require.InDelta(t, 15, (got.Syncs[i] - got.Syncs[i-1]).Seconds(), 1e-6)
		}
	}
	require.Len(t, first, draws)
}

// A start is from the scale write, at the end of a second, to the beginning of the first second in which a replica
// works.
func TestSimulatedStartsAreAsLongAsMeasured(t *testing.T) {
	s, _ := find("step")
	m := facts()
	took := 0.0
	const starts = 40
	for seed := range starts {
		m.StartSeconds = known(20 + float64(seed)/starts)
		p := modelOf(s, m, nil)
		p.Rate = model.Constant(1000)
		system := model.New(p, uint64(seed))
		system.Step()
		system.Scale(2)
		for len(system.InstancesSample().Instances) < 2 {
			system.Step()
		}
		took += float64(system.Second()-1) / starts // it works from the beginning of this second on, and was asked for at 1
	}
	require.InDelta(t, 20.5, took, 0.1)
}

func TestASimulationCanBeRepeated(t *testing.T) {
	s, _ := find("java")
	s = s.lasting(2 * time.Minute)
	one, other := simulate(s, facts(), nil), simulate(s, facts(), nil)
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
		"hours":   {*got.Low.ReplicaHours, 1, *got.Mean.ReplicaHours, 2, *got.High.ReplicaHours, 3},
		"late":    {*got.Low.LatePct, 0, *got.Mean.LatePct, 2, *got.High.LatePct, 4},
		"actions": {*got.Low.Actions, 2, *got.Mean.Actions, 2, *got.High.Actions, 2},
		"most":    {*got.Low.MaxReplicas, 5, *got.Mean.MaxReplicas, 6, *got.High.MaxReplicas, 7},
	} {
		for i := 0; i < len(figures); i += 2 {
			require.InDelta(t, figures[i+1], figures[i], 1e-9, name)
		}
	}
}
