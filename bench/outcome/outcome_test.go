// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/golden"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/history"
)

var update = flag.Bool("update", false, "write golden files")

const day = 24 * hour

// outcomeOf is that of some days: 1 % late, 3 replicas and a peak of 5.
func outcomeOf(days float64) history.Outcome {
	return history.Outcome{
		KnownSeconds: days * day, LateSeconds: days * day / 100,
		RunningSeconds: days * day, ReplicaSeconds: days * day * 3, PeakSeconds: days * day * 5, WholeSeconds: days * day,
	}
}

// config is a report of 30 days.
func config() Config {
	to := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	punctual := outcomeOf(30)
	punctual.LateSeconds = 0
	gap := outcomeOf(30)
	gap.KnownSeconds, gap.LateSeconds, gap.RunningSeconds = gap.KnownSeconds-3*hour, 20, gap.RunningSeconds-hour
	gap.WholeSeconds -= 4 * hour
	moved := outcomeOf(10)
	moved.ReplicaSeconds *= 2
	return Config{
		From: to.Add(-30 * 24 * time.Hour), To: to, Outcomes: history.Outcomes{Policies: []history.PolicyOutcome{
			{Namespace: "media", Name: "crop", Scaled: punctual},
			{Namespace: "media", Name: "index", Scaled: gap},
			{
				Namespace: "media", Name: "resize", Scaled: outcomeOf(30),
				LateReasons: map[string]float64{"TooManyReplicas": 20_000, "CatchingUp": 5900, "ReplicasHeld": 20_000},
			},
			{Namespace: "shop", Name: "moved", Scaled: outcomeOf(20), Recommend: moved},
			{Namespace: "shop", Name: "new"},
			{Namespace: "shop", Name: "tried", Recommend: outcomeOf(30)},
		}},
	}
}

func TestTheReportIsTrueToItsOutcomes(t *testing.T) {
	r := New(config())
	byName := map[string]Row{}
	for _, row := range r.Rows {
		byName[row.Name] = row
	}
	resize := byName["media/resize"]
	require.InDelta(t, 99, *resize.ObjectiveMetPercent, 0)
	require.InDelta(t, 432, *resize.LateMinutes, 0)
	require.InDelta(t, 2160, *resize.ReplicaHours, 0)
	require.InDelta(t, 1440, *resize.SavedReplicaHours, 0)
	require.InDelta(t, 40, *resize.SavedPercent, 0)
	require.Nil(t, resize.Cost)
	require.Nil(t, resize.SavedSinceRecommend)
	require.Zero(t, resize.NoDataHours)
	require.Equal(t, "CatchingUp", resize.LateReasons[2].Reason)
	require.InDelta(t, 4, byName["media/index"].NoDataHours, 0, "one gap after the other")
	require.InDelta(t, 99.99, *byName["media/index"].ObjectiveMetPercent, 0, "100 means that nothing was late")
	require.InDelta(t, 100, *byName["media/crop"].ObjectiveMetPercent, 0)
	moved := byName["shop/moved"]
	require.InDelta(t, 20*24*3, *moved.SavedSinceRecommend, 0, "6 replicas before, 3 since")
	require.InDelta(t, 99, *moved.Recommend.ObjectiveMetPercent, 0)
	require.InDelta(t, 6, moved.Recommend.MeanReplicas, 0)
	for _, name := range []string{"shop/new", "shop/tried"} {
		row := byName[name]
		require.Nil(t, row.ObjectiveMetPercent, "unknown is not 0")
		require.Nil(t, row.ReplicaHours)
		require.Nil(t, row.LateMinutes)
	}
	require.InDelta(t, 720, byName["shop/new"].NoDataHours, 0)
	require.Equal(t, 6, r.Total.Policies)
	require.InDelta(t, 2160*3+1440, *r.Total.ReplicaHours, 0)
	require.Equal(t, "media/resize", r.Rows[0].Name)
	require.Equal(t, []string{"shop/new", "shop/tried"}, []string{r.Rows[4].Name, r.Rows[5].Name}, "unknown is last")
}

func TestAShortTimeInModeRecommendIsNotCompared(t *testing.T) {
	c := config()
	c.Policies = []history.PolicyOutcome{{Namespace: "a", Name: "b", Scaled: outcomeOf(29), Recommend: outcomeOf(0.9)}}
	require.Nil(t, New(c).Rows[0].SavedSinceRecommend, "a night or a day alone is not the mean")
}

func TestARowIsAPolicyOrAGroup(t *testing.T) {
	c := config()
	c.Group, c.GroupedBy = func(p history.PolicyOutcome) string { return p.Namespace }, "namespace"
	r := New(c)
	require.Len(t, r.Rows, 2)
	require.Equal(t, "media", r.Rows[0].Name)
	require.Equal(t, 3, r.Rows[0].Policies)
	require.InDelta(t, 3*2160, *r.Rows[0].ReplicaHours, 0)
	require.InDelta(t, 720, r.Rows[1].NoDataHours, 0)
	require.Equal(t, New(config()).Total, r.Total)
}

func TestTheReportIsWrittenInEachForm(t *testing.T) {
	r := New(config())
	text := r.Text(80)
	golden.Equal(t, *update, "report.txt", []byte(text))
	golden.JSON(t, *update, "report.json", r)
	c := config()
	c.CostPerReplicaHour = new(0.05)
	priced := New(c)
	golden.Written(t, *update, "report.csv", priced.WriteCSV)
	require.InDelta(t, 108, *priced.Rows[0].Cost, 0)
	require.InDelta(t, 72, *priced.Rows[0].SavedCost, 0)
	var html bytes.Buffer
	documented, err := os.ReadFile("../../docs/report.md")
	require.NoError(t, err)
	require.Contains(t, string(documented), "\n"+text+"```\n", "docs/report.md shows the same")
	require.NoError(t, priced.Page().Write(&html))
	for _, want := range []string{
		"<h1>Latency objectives were met 99.", "fewer replica-hours than at each day&#39;s peak</h1>", "SAVED COST",
		"TooManyReplicas 5h33m", "No data for 724h of 4320h", "2 of 6 rows have no point",
	} {
		require.Contains(t, html.String(), want)
	}
}

// threeDays is a report from noon on: two policies, of which one is late on the last day, and unknown on the second.
func threeDays() Config {
	const half = 12 * hour
	from := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	late, steps := outcomeOf(1), []history.Step{}
	late.LateSeconds = day / 4
	for n := range 60 {
		steps = append(steps, history.Step{Start: from.Add(time.Duration(n) * time.Hour)})
		if n != 30 {
			steps[n].Load, steps[n].Backlog, steps[n].WithLoad = new(float64(n)), new(10*float64(n)), new(2.0)
			steps[n].Replicas, steps[n].Peak, steps[n].Scaled = new(6.0), new(10.0), new(2.0)
		}
	}
	sum := func(days ...history.Outcome) (all history.Outcome) {
		for _, one := range days {
			all = all.Plus(one)
		}
		return all
	}
	crop := []history.Outcome{{KnownSeconds: half}, outcomeOf(1), outcomeOf(1)}
	resize := []history.Outcome{{KnownSeconds: half}, {}, late}
	return Config{From: from, To: from.Add(60 * time.Hour), Outcomes: history.Outcomes{
		Policies: []history.PolicyOutcome{
			{Namespace: "media", Name: "crop", Scaled: sum(crop...), Days: crop},
			{Namespace: "media", Name: "resize", Scaled: sum(resize...), Days: resize},
		},
		Course: steps,
	}}
}

func TestTheChartsAreTrueToTheOutcomes(t *testing.T) {
	p := New(threeDays()).Page()
	charts := map[string]page.Chart{}
	for _, chart := range p.Charts {
		require.Equal(t, threeDays().From, chart.Start)
		charts[chart.Title] = chart
	}
	require.Equal(t, "Load", p.Charts[0].Title, "the scatter is beside it")
	load := charts["Load"].Series[0]
	require.Len(t, load.Values, 60)
	require.InDelta(t, 29*hour, load.Seconds[29], 0)
	require.InDelta(t, 29, *load.Values[29], 0)
	require.Nil(t, load.Values[30], "unknown is a gap")
	require.InDelta(t, 290, *charts["Backlog"].Series[0].Values[29], 0)
	require.InDelta(t, 6, *charts["Running replicas"].Series[0].Values[29], 0)
	require.InDelta(t, 10, *charts["Running replicas"].Series[1].Values[29], 0)
	require.InDelta(t, 2, *charts["Policies with data"].Series[1].Values[29], 0)

	late := charts["Late time of each day"]
	require.True(t, late.Panels, "one scale")
	require.Len(t, late.Series, 3)
	total, resize, crop := late.Series[0], late.Series[1], late.Series[2]
	require.Equal(t, []string{"all policies", "media/resize", "media/crop"}, []string{total.Name, resize.Name, crop.Name})
	require.Equal(t, []float64{0, 12 * hour, 36 * hour}, total.Seconds, "days begin at midnight")
	require.Equal(t, page.Known(0, 1, 13), total.Values, "the mean of 1 % and 25 % on the last day")
	require.Equal(t, []*float64{new(0.0), nil, new(25.0)}, resize.Values)
}

func TestTheScatterHasThePoliciesOfKnownValues(t *testing.T) {
	p := New(config()).Page()
	require.Equal(t, []page.Point{
		{Name: "all policies", X: 60, Y: 0.46},
		{Name: "media/resize", X: 60, Y: 1},
		{Name: "shop/moved", X: 60, Y: 1},
		{Name: "media/index", X: 60, Y: 0.01},
		{Name: "media/crop", X: 60, Y: 0},
	}, p.Scatter.Points)
	require.Equal(t, 6, p.Scatter.Names)
	c := config()
	c.Policies = c.Policies[4:]
	unknown := New(c).Page()
	require.Nil(t, unknown.Scatter)
	require.Contains(t, unknown.Notes[0], "2 of 2 rows have no point")
	require.NoError(t, unknown.Write(io.Discard))
}

func TestThePageOfAThousandPoliciesIsSmall(t *testing.T) {
	c := threeDays()
	c.To = c.From.Add(62 * 24 * time.Hour)
	one := c.Policies[0]
	one.Days = slices.Repeat(one.Days, 21)
	c.Policies, c.Course = nil, slices.Repeat(c.Course[:1], 62*24)
	for n := range 1200 {
		one.Name = fmt.Sprintf("policy-with-a-long-name-%d", n)
		c.Policies = append(c.Policies, one)
	}
	p := New(c).Page()
	require.Len(t, p.Scatter.Points, 1+1000)
	require.Contains(t, p.Notes[0], "shows the 1000 rows with the most late time, and leaves out 200.")
	require.Len(t, p.Charts[3].Series, 1+5)
	var text bytes.Buffer
	require.NoError(t, p.Write(&text))
	require.Less(t, text.Len(), 800_000)
}

func TestLengthsAreShort(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0s", 45.4: "45s", 60: "1m", 90: "1m30s", 3600: "1h", 7800: "2h10m", 720 * 3600: "720h", 600: "10m", 36_000: "10h",
		3599.6: "1h", 62 * 86_400 * 2000: "2976000h",
	} {
		require.Equal(t, want, length(seconds))
	}
}
