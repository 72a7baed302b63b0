// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// periodic times from one on.
func periodic(from, every, until float64) (all []time.Duration) {
	for at := from; at < until; at += every {
		all = append(all, time.Duration(at*float64(time.Second)))
	}
	return all
}

func step() model.Scenario {
	return model.Scenario{
		Seconds: 900, Rate: func(second float64) float64 {
			if second >= 300 && second < 600 {
				return 200
			}
			return 20
		},
		Capacity: model.Constant(50), Objective: time.Minute, Initial: 1, Min: 1, Max: 20, Start: 20 * time.Second,
	}
}

// changes are the seconds at the end of which replicas were set.
func changes(s model.Scenario, of New) (seconds []int) {
	system := model.New(s, 4)
	controller := of(system.Scenario())
	for range s.Seconds {
		system.Step()
		before := system.Replicas()
		system.Scale(controller.Replicas(system))
		if system.Replicas() != before {
			seconds = append(seconds, system.Second())
		}
	}
	return seconds
}

func TestATimetableOfTheUsualPhasesDecidesAsUsual(t *testing.T) {
	s := step()
	usual := Timetable{Polls: periodic(4.01, 10, 900), Scrapes: periodic(4, 10, 900), Syncs: periodic(1, 15, 900)}
	want, got := changes(s, Without()), changes(s, At(usual))
	require.Len(t, got, len(want))
	require.Equal(t, want[0], got[0])
	for i := range want {
		require.InDelta(t, want[i], got[i], 15, "a decision at each news may be a sync away")
	}
}

func TestReplicasAreSetOnlyAtSyncs(t *testing.T) {
	s := step()
	got := changes(s,
		At(Timetable{Polls: periodic(0.2, 10, 900), Scrapes: periodic(7, 10, 900), Syncs: periodic(8.3, 15, 900)}))
	require.NotEmpty(t, got)
	for _, second := range got {
		require.Equal(t, 7, second%15, "the sync at 8.3 s is over when eight seconds are")
	}
	require.Empty(t, changes(s, At(Timetable{Polls: periodic(0, 10, 900)})))
	require.Empty(t, changes(s, At(Timetable{Syncs: periodic(0, 15, 900)})), "nothing was ever seen")
}

func TestASyncJustBeforeAPollKnowsNothingOfIt(t *testing.T) {
	s := step()
	s.Seconds = 340
	polls := periodic(10, 10, 330)
	before := changes(s, At(Timetable{Polls: polls, Scrapes: polls, Syncs: periodic(9.9, 10, 340)}))
	after := changes(s, At(Timetable{Polls: polls, Scrapes: polls, Syncs: periodic(10.1, 10, 340)}))
	require.NotEmpty(t, after)
	require.Equal(t, after[0]+10, before[0])
}
