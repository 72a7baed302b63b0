// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// spending is a decision of a replica that processes 100/s, with an objectivePercent, 10 s after the last reading.
func spending(share int32, ready float64, counts ...policy.Count) (policy.Input, policy.State) {
	in := input(1, reading(ready, 40))
	in.Spec.ObjectivePercent, in.Reading.OldestAge = &share, backlog.Known(0)
	state := policy.State{
		ReadAt: noon().Add(-10 * time.Second), Capacity: learned(100), Arrivals: arrivals(40),
		Budget: policy.Budget{Since: noon().Add(-time.Minute), Counts: counts},
	}
	if len(counts) == 0 {
		state.Budget = policy.Budget{}
	}
	return in, state
}

func TestMessagesCountAsLateByTheObjective(t *testing.T) {
	const none = -1
	for name, test := range map[string]struct {
		ready  float64
		change func(*policy.Input, *policy.State)
		// late is the share of the messages; none if it is unknown.
		late float64
	}{
		"no backlog":                  {ready: 0, late: 0},
		"a wait within the objective": {ready: 5_000, late: 0},
		"a wait beyond the objective": {ready: 500_000, late: 1},
		"the oldest message is late": {ready: 100, late: 1, change: func(in *policy.Input, _ *policy.State) {
			in.Reading.OldestAge, in.Reading.OldestAt = backlog.Known(61), noon()
		}},
		"the oldest message is stuck": {ready: 100, late: 0, change: func(in *policy.Input, s *policy.State) {
			in.Reading.OldestAge, in.Reading.OldestAt = backlog.Known(61), noon()
			s.Oldest = policy.Oldest{At: noon().Add(-30 * time.Second), Published: noon().Add(-61 * time.Second)}
		}},
		"some are delayed": {ready: 500_000, late: none, change: func(in *policy.Input, _ *policy.State) {
			in.Reading.Delayed = backlog.Known(1)
		}},
		"the age is unknown": {ready: 500_000, late: none, change: func(in *policy.Input, _ *policy.State) {
			in.Reading.OldestAge = backlog.Unknown(backlog.ErrNoData)
		}},
		"calls fail": {ready: 500_000, late: none, change: func(in *policy.Input, _ *policy.State) {
			in.Reading.Instances.UserExceptionRate = backlog.Known(9)
			in.Reading.Instances.ProcessRate = backlog.Known(1)
		}},
		"some topics are unknown": {ready: 500_000, late: none, change: func(in *policy.Input, _ *policy.State) {
			in.Reading.Coverage = backlog.Coverage{Topics: 2, Known: 1}
		}},
		"the capacity is unknown": {ready: 500_000, late: none, change: func(_ *policy.Input, s *policy.State) {
			s.Capacity = nil
		}},
		"nothing was read for long": {ready: 500_000, late: none, change: func(_ *policy.Input, s *policy.State) {
			s.ReadAt = noon().Add(-time.Minute)
		}},
		"the reading is not new": {ready: 500_000, late: none, change: func(_ *policy.Input, s *policy.State) {
			s.ReadAt = noon()
		}},
		"all have to be in time": {ready: 500_000, late: none, change: func(in *policy.Input, _ *policy.State) {
			in.Spec.ObjectivePercent = new(int32(100))
		}},
		"nothing is said": {ready: 500_000, late: none, change: func(in *policy.Input, _ *policy.State) {
			in.Spec.ObjectivePercent = nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in, state := spending(99, test.ready)
			in.Spec.MaxReplicas = 2
			if test.change != nil {
				test.change(&in, &state)
			}
			decision, _ := policy.Decide(in, state)
			late, err := decision.Late.Value()
			if test.late == none {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.InDelta(t, test.late, late, 1e-9)
		})
	}
}

func TestABudgetCoversTheLastWindow(t *testing.T) {
	for name, test := range map[string]struct {
		since  time.Duration
		window *metav1.Duration
		counts int
		late   float64
	}{
		"in the same part":            {4 * time.Minute, nil, 1, 100.0 / 1400},
		"in the next part":            {6 * time.Minute, nil, 2, 100.0 / 1400},
		"just before it is forgotten": {59 * time.Minute, nil, 12, 100.0 / 1400},
		"after the window":            {time.Hour, nil, 1, 0},
		"with a short window":         {10 * time.Minute, &metav1.Duration{Duration: 10 * time.Minute}, 1, 0},
		"with a long window":          {time.Hour, &metav1.Duration{Duration: 4 * time.Hour}, 4, 100.0 / 1400},
		"after the clock was set":     {-time.Hour, nil, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in, state := spending(99, 0, policy.Count{All: 1000, Late: 100})
			in.Spec.ObjectiveWindow = test.window
			state.Budget.Since = noon().Add(-test.since)
			decision, after := policy.Decide(in, state)
			require.Len(t, after.Budget.Counts, test.counts)
			late, err := decision.Late.Value()
			require.NoError(t, err)
			require.InDelta(t, test.late, late, 1e-9)
		})
	}
}

func TestTheBurnRateIsOneWhenTheBudgetIsSpent(t *testing.T) {
	in := input(1, reading(0, 40))
	_, err := policy.Decision{Late: backlog.Known(0.01)}.BurnRate(in.Spec).Value()
	require.ErrorIs(t, err, backlog.ErrNotRequested)
	in.Spec.ObjectivePercent = new(int32(98))
	_, err = policy.Decision{}.BurnRate(in.Spec).Value()
	require.ErrorIs(t, err, backlog.ErrNoData)
	burn, err := policy.Decision{Late: backlog.Known(0.02)}.BurnRate(in.Spec).Value()
	require.NoError(t, err)
	require.InDelta(t, 1, burn, 1e-9)
}

func TestABudgetIsSpentWhileItIsLeft(t *testing.T) {
	decide := func(share int32, counts ...policy.Count) policy.Decision {
		in, state := spending(share, 0, counts...)
		in.CurrentReplicas, in.Reading = 8, reading(20_000, 800)
		in.Reading.Consumers, in.Reading.OldestAge = backlog.Known(8), backlog.Known(20)
		state.Arrivals = arrivals(800)
		state.Arrivals.Rise, state.Arrivals.Peak = 3, 4_000
		state.Decided, state.Start.Replicas = policy.Decided{}, 8
		decision, _ := policy.Decide(in, state)
		return decision
	}
	strict := decide(100)
	all, half := decide(99, policy.Count{All: 100_000}), decide(99, policy.Count{All: 100_000, Late: 500})
	spent, unknown := decide(99, policy.Count{All: 100_000, Late: 1_000}), decide(99)
	for name, of := range map[string]func(policy.Decision) float64{
		"drains later":        func(d policy.Decision) float64 { return d.Terms.Drain },
		"keeps less headroom": func(d policy.Decision) float64 { return d.Terms.Utilization },
	} {
		require.Greater(t, of(all), of(half), name)
		require.Greater(t, of(half), of(strict), name)
	}
	require.InDelta(t, 0.4*120+0.35*(120-50), all.Terms.Drain, 1e-9, "with a reaction of 50 s")
	for _, one := range []policy.Decision{spent, unknown} {
		require.Equal(t, strict.Terms, one.Terms)
		require.Equal(t, strict.Replicas, one.Replicas)
	}
	require.Less(t, all.Replicas, strict.Replicas)
}
