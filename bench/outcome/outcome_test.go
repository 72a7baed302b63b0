// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/golden"
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
		From: to.Add(-30 * 24 * time.Hour), To: to,
		Policies: []history.PolicyOutcome{
			{Namespace: "media", Name: "crop", Scaled: punctual},
			{Namespace: "media", Name: "index", Scaled: gap},
			{
				Namespace: "media", Name: "resize", Scaled: outcomeOf(30),
				LateReasons: map[string]float64{"TooManyReplicas": 20_000, "CatchingUp": 5900, "ReplicasHeld": 20_000},
			},
			{Namespace: "shop", Name: "moved", Scaled: outcomeOf(20), Recommend: moved},
			{Namespace: "shop", Name: "new"},
			{Namespace: "shop", Name: "tried", Recommend: outcomeOf(30)},
		},
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
	golden.Written(t, *update, "report.txt", r.WriteText)
	golden.JSON(t, *update, "report.json", r)
	c := config()
	c.CostPerReplicaHour = new(0.05)
	priced := New(c)
	golden.Written(t, *update, "report.csv", priced.WriteCSV)
	require.InDelta(t, 108, *priced.Rows[0].Cost, 0)
	require.InDelta(t, 72, *priced.Rows[0].SavedCost, 0)
	var text, page bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	documented, err := os.ReadFile("../../docs/report.md")
	require.NoError(t, err)
	require.Contains(t, string(documented), "\n"+text.String()+"```\n", "docs/report.md shows the same")
	for line := range strings.Lines(text.String()) {
		if !strings.Contains(line, ": ") && !strings.HasPrefix(line, "Latency") && !strings.HasPrefix(line, "No data") {
			require.LessOrEqual(t, utf8.RuneCountInString(line), 81, line)
		}
	}
	require.NoError(t, priced.Page().Write(&page))
	for _, want := range []string{
		"<h1>Latency objectives were met 99.", "fewer replica-hours than at each day&#39;s peak</h1>", "SAVED COST",
		"TooManyReplicas 5h33m", "No data for 724h of 4320h",
	} {
		require.Contains(t, page.String(), want)
	}
}

func TestLengthsAreShort(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0s", 45.4: "45s", 60: "1m", 90: "1m30s", 3600: "1h", 7800: "2h10m", 720 * 3600: "720h", 600: "10m", 36_000: "10h",
	} {
		require.Equal(t, want, length(seconds))
	}
}
