// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/golden"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/baseline"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/trace"
)

var update = flag.Bool("update", false, "write golden files")

// hill is an hour of load with ten times as much in the middle, and the 8 replicas that ran.
func hill(t *testing.T) trace.Load {
	t.Helper()
	var text strings.Builder
	text.WriteString("time,rate,replicas\n")
	for minute := range 61 {
		rate := 40.0
		if minute >= 20 && minute < 40 {
			rate = 400
		}
		fmt.Fprintf(&text, "%d,%v,8\n", 1_760_000_000+60*minute, rate)
	}
	load, err := trace.Read(strings.NewReader(text.String()), time.Minute)
	require.NoError(t, err)
	return load
}

func config(t *testing.T) Config {
	t.Helper()
	cost := 0.5
	return Config{
		Load: hill(t), Source: "hill.csv",
		Spec: v1alpha1.AutoscalingPolicySpec{ScalingSpec: v1alpha1.ScalingSpec{
			MinReplicas: new(int32(1)), MaxReplicas: 20, LatencyObjective: metav1.Duration{Duration: time.Minute},
		}},
		Capacity: Estimate{Range{40, 50, 60}, "measured"}, Start: Estimate{Exactly(20), "assumed"},
		Subscription: backlog.Shared, Partitions: 1, CPUShare: 1, CostPerReplicaHour: &cost, Seed: 1,
	}
}

func TestRunComparesAllContenders(t *testing.T) {
	result, err := Run(t.Context(), config(t))
	require.NoError(t, err)
	names := map[string]Outcome{}
	for _, o := range result.Contenders {
		names[o.Name] = o
		require.LessOrEqual(t, o.ReplicaHours.Low, o.ReplicaHours.Expected)
		require.LessOrEqual(t, o.ReplicaHours.Expected, o.ReplicaHours.High)
		require.InDelta(t, 0.5, o.Cost.Expected/o.ReplicaHours.Expected, 1e-9, "at half a coin for an hour")
	}
	require.Equal(t, Policy, result.Contenders[0].Name)
	require.Len(t, names, 6)
	require.Less(t, names[Policy].LateRatio.High, 0.01)
	require.Less(t, names[Policy].ReplicaHours.Expected, names[FixedCount].ReplicaHours.Expected)
	require.Equal(t, Exactly(10), names[FixedCount].ReplicaHours, "400/s at 80% of 50/s each")
	require.Equal(t, Exactly(0), names[FixedCount].Changes)
	require.InDelta(t, 8, names[Recorded].ReplicaHours.Expected, 1e-9)
	require.Zero(t, names[Recorded].LateRatio.Low, "8 replicas of 60/s each are enough")
	require.Positive(t, names[Recorded].LateRatio.High, "8 of 40/s each are not")
	require.InDelta(t, 20*60*400+40*60*40, result.Load.Messages, 400*60*2, "rates between rows are interpolated")
}

func TestEqualConfigsGiveEqualTables(t *testing.T) {
	var texts []string
	for range 2 {
		result, err := Run(t.Context(), config(t))
		require.NoError(t, err)
		texts = append(texts, result.Text(80))
	}
	require.Equal(t, texts[0], texts[1])
	golden.Equal(t, *update, "hill.txt", []byte(texts[0]))
}

func TestResultIsJSONWithoutCurves(t *testing.T) {
	c := config(t)
	c.CostPerReplicaHour, c.Capacity = nil, Estimate{Exactly(50), "--capacity"}
	result, err := Run(t.Context(), c)
	require.NoError(t, err)
	golden.JSON(t, *update, "hill.json", result)
}

func TestSchedulesLimitThePolicyAtTheirTimes(t *testing.T) {
	c := config(t)
	c.Spec.MaxReplicas = 30
	// The load is from 8:53:20 to 9:53:20 UTC, with 10 times as much from 9:13:20 on.
	c.Spec.Schedules = []v1alpha1.Schedule{
		{Name: "early", Start: "0 8 * * *", End: "0 9 * * *", MinReplicas: new(int32(15))},
		{Name: "late", TimeZone: "Europe/Berlin", Start: "20 11 * * *", End: "30 11 * * *", MaxReplicas: new(int32(3))},
	}
	result, err := Run(t.Context(), c)
	require.NoError(t, err)
	ran := result.Contenders[0].replicas
	minute := func(first, last int) []int32 { return ran[60*first : 60*last] }
	require.Equal(t, int32(15), slices.Min(minute(2, 6)), "until 9:00")
	require.Equal(t, int32(1), slices.Min(minute(8, 19)), "after it")
	require.Equal(t, int32(3), slices.Max(minute(28, 36)), "from 9:20 to 9:30")
	require.Greater(t, slices.Max(minute(37, 40)), int32(8), "after it")

	c.Spec.Schedules[1].TimeZone = "Europe/Berlln"
	_, err = Run(t.Context(), c)
	require.ErrorContains(t, err, `the policy cannot be simulated: schedule late: timeZone "Europe/Berlln"`)
	_, err = NewCurve(t.Context(), c, nil)
	require.ErrorContains(t, err, "schedule late: ")
}

func TestRunRejectsImpossibleConfigs(t *testing.T) {
	empty, err := trace.Read(strings.NewReader("time,rate\n0,0\n60,0\n"), time.Hour)
	require.NoError(t, err)
	tests := map[string]struct {
		change func(*Config)
		want   string
	}{
		"no messages": {func(c *Config) { c.Load = empty }, "the load has no messages"},
		"an absurd rate": {
			func(c *Config) { c.Capacity.Range = Exactly(0.03) },
			"the load has up to 400 messages/s, and one replica processes 0.03/s: it must need at most 10000 replicas",
		},
		"no capacity":            {func(c *Config) { c.Capacity.Range = Exactly(0) }, "the capacity of a replica"},
		"a capacity that is NaN": {func(c *Config) { c.Capacity.Range = Exactly(math.NaN()) }, "the capacity of a replica"},
		"a range upside down":    {func(c *Config) { c.Start.Range = Range{30, 20, 10} }, "the start time of a replica"},
		"bounds upside down":     {func(c *Config) { c.Spec.MaxReplicas = 0 }, "the bounds are 1 to 0 replicas"},
		"no partitions":          {func(c *Config) { c.Partitions = 0 }, "there are 0 partitions"},
		"no CPU":                 {func(c *Config) { c.CPUShare = 0 }, "the CPU share is 0"},
		"fewer than no replicas": {func(c *Config) { c.Fixed = -1 }, "there are -1 fixed replicas"},
		"a cost below nothing":   {func(c *Config) { c.CostPerReplicaHour = new(-1.0) }, "the cost is -1"},
		"an unknown type":        {func(c *Config) { c.Subscription = "Reader" }, `subscription type "Reader"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := config(t)
			tt.change(&c)
			_, err := Run(t.Context(), c)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// interrupts ends its context at the third step of a simulation.
type interrupts struct {
	steps  int
	cancel func()
}

func (i *interrupts) Replicas(*model.System) int {
	if i.steps++; i.steps == 3 {
		i.cancel()
	}
	return 1
}

func TestASimulationEndsAtTheStepThatEndsItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("interrupted")
	one := &interrupts{cancel: func() { cancel(reason) }}
	c := config(t)
	_, err := c.simulate(ctx, contender{new: func(model.Scenario) baseline.Controller { return one }}, c.plans()[0])
	require.ErrorIs(t, err, reason)
	require.Equal(t, 3, one.steps)
	_, err = Run(ctx, c)
	require.ErrorIs(t, err, reason)
}

func TestBetterListsWhatThePolicyLoses(t *testing.T) {
	ours := Outcome{Name: Policy, hours: []float64{100, 120, 90}, late: []float64{0.01, 0.02, 0}}
	tests := map[string]struct {
		other Outcome
		want  []string
	}{
		"nothing": {Outcome{hours: []float64{110, 130, 99}, late: []float64{0.01, 0.02, 0}}, []string{}},
		"less by luck": {
			Outcome{hours: []float64{99.5, 119, 89.5}, late: []float64{0.0098, 0.02, 0}},
			[]string{},
		},
		"fewer hours in all cases": {
			Outcome{Name: "other", hours: []float64{90, 110, 80}, late: []float64{0.01, 0.02, 0}},
			[]string{"other needs 10% fewer replica-hours, with no more late messages"},
		},
		"fewer hours as expected alone": {
			Outcome{Name: "other", hours: []float64{90, 130, 80}, late: []float64{0.01, 0.02, 0}},
			[]string{
				"other needs 10% fewer replica-hours, with no more late messages " +
					"(with the expected values, but not at both ends of the range)",
			},
		},
		"fewer hours, and more late": {Outcome{hours: []float64{50, 60, 40}, late: []float64{0.2, 0.3, 0.1}}, []string{}},
		"fewer late at a bound alone": {
			Outcome{Name: "other", hours: []float64{150, 180, 120}, late: []float64{0.01, 0, 0}},
			[]string{
				"other has fewer late messages, 0.00% instead of 2.00%, with +50% replica-hours " +
					"(only with the lowest capacity and the longest start)",
			},
		},
		"fewer late, and more hours": {
			Outcome{Name: "other", hours: []float64{150, 180, 120}, late: []float64{0, 0, 0}},
			[]string{
				"other has fewer late messages, 0.00% instead of 1.00%, with +50% replica-hours " +
					"(with the expected values, but not at both ends of the range)",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			found, in := Result{Contenders: []Outcome{ours, tt.other}}.better()
			require.Equal(t, tt.want, found)
			require.Empty(t, in[0])
			require.Equal(t, len(tt.want) > 0, in[1] != "")
		})
	}
}

func TestResultChecksTheModel(t *testing.T) {
	c := config(t)
	c.RecordedLate = new(0.25)
	result, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.InDelta(t, 0.25, result.Check.Recorded, 1e-9)
	require.Zero(t, result.Check.Model.Low)
	require.Positive(t, result.Check.Model.High, "8 replicas of 40/s each are late")
	require.Contains(t, result.Check.text(), "messages were late for 25.00% of the time in the recording")
}

func TestPageShowsAllContendersAndTheBetterOnes(t *testing.T) {
	result, err := Run(t.Context(), config(t))
	require.NoError(t, err)
	result.Better = []string{"fixed has fewer late messages"}
	p := result.Page()
	require.Contains(t, p.Summary, "Better than the policy: fixed has fewer late messages.")
	require.Equal(t, "60 s objective met for 100% of messages, with 47% fewer replica-hours than today", p.Title)
	require.Len(t, p.Scatter.Points, 6)
	require.Len(t, p.Charts, 4)
	require.InDelta(t, result.Function.ObjectiveSeconds, *p.Charts[2].Objective, 0)
	for _, chart := range p.Charts[1:] {
		require.Len(t, chart.Series, 6)
		for _, series := range chart.Series {
			require.Len(t, series.Seconds, len(result.Contenders[0].replicas), "the page leaves out what no screen shows")
		}
	}
	require.NoError(t, p.Write(io.Discard))
}
