// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/history"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/prometheus"
)

const scrape = 15 * time.Second

// jobs scrape the same samples twice.
func jobs() []string { return []string{"pods", "service"} }

// recording is series as OpenMetrics by their names and labels, and what they say.
type recording struct {
	series            map[string]*strings.Builder
	scaled, recommend history.Outcome
}

func (r *recording) add(at time.Time, leader, name string, value float64, labels ...string) {
	labels = append(labels, `namespace="media"`, `policy="resize"`, fmt.Sprintf("instance=%q", leader))
	for _, job := range jobs() {
		series := fmt.Sprintf("pulsar_autoscaler_policy_%s{%s,job=%q}", name, strings.Join(labels, ","), job)
		if r.series[series] == nil {
			r.series[series] = &strings.Builder{}
		}
		fmt.Fprintf(r.series[series], "%s %g %d\n", series, value, at.Unix())
	}
}

// loadAt is a load that rises within each hour.
func loadAt(since time.Duration) float64 { return (since % time.Hour).Minutes() }

// record records two days: ten hours in mode Recommend, three hours without samples, and after thirty hours another
// leader, with counters of its own. Messages are late for 7 minutes in 97, and up to 5 replicas run. Twenty minutes of
// an hour are not scraped, in which nothing is late.
func record(begin time.Time) recording {
	r := recording{series: map[string]*strings.Builder{}}
	lateSeconds, replicaSeconds := map[string]float64{}, map[string]float64{}
	for since := time.Duration(0); since <= 48*time.Hour; since += scrape {
		if since > 20*time.Hour && since < 23*time.Hour {
			continue
		}
		at, leader, mode, outcome := begin.Add(since), "a", "Recommend", &r.recommend
		if since >= 30*time.Hour {
			leader = "b"
		}
		if since > 10*time.Hour {
			mode, outcome = "Auto", &r.scaled
		}
		isLate, replicas := int(since.Minutes())%97 < 7, float64(1+int(since.Hours())%5)
		elapsed := scrape.Seconds()
		outcome.RunningSeconds += elapsed
		outcome.ReplicaSeconds, outcome.PeakSeconds = outcome.ReplicaSeconds+replicas*elapsed, outcome.PeakSeconds+5*elapsed
		if since > 33*time.Hour+10*time.Minute && since < 33*time.Hour+30*time.Minute {
			replicaSeconds[leader] += replicas * elapsed
			continue
		}
		r.add(at, leader, "info", 1, fmt.Sprintf("mode=%q", mode))
		r.add(at, leader, "running_replicas", replicas)
		r.add(at, leader, "publish_rate", loadAt(since))
		r.add(at, leader, "ready_messages", 10*loadAt(since))
		r.add(at, leader, "late_seconds_total", lateSeconds[leader])
		r.add(at, leader, "replica_seconds_total", replicaSeconds[leader])
		outcome.KnownSeconds += elapsed
		outcome.WholeSeconds += elapsed
		replicaSeconds[leader] += replicas * elapsed
		if !isLate {
			r.add(at, leader, "objective_met", 1)
			continue
		}
		outcome.LateSeconds, lateSeconds[leader] = outcome.LateSeconds+elapsed, lateSeconds[leader]+elapsed
		r.add(at, leader, "objective_met", 0)
		r.add(at, leader, "condition", 1, `type="ObjectiveMet"`, `status="False"`, `reason="TooManyReplicas"`)
	}
	return r
}

// backfill writes the recording as the data of a server that is not started yet.
func (r recording) backfill(t *testing.T, dir string) {
	t.Helper()
	var text strings.Builder
	for _, lines := range r.series {
		text.WriteString(lines.String())
	}
	text.WriteString("# EOF\n")
	file := filepath.Join(dir, "recording.txt")
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
	command := exec.CommandContext(t.Context(), theBinaries.Need(t).Promtool, "tsdb", "create-blocks-from", "openmetrics",
		"--max-block-duration=24h", "--quiet", file, filepath.Join(dir, "data"))
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestARealPrometheusKnowsTheOutcomesOfPolicies(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	begin, dir := time.Now().Truncate(day).Add(-3*day), t.TempDir()
	want := record(begin)
	want.backfill(t, dir)
	s, err := prometheus.Start(t.Context(), prometheus.Config{
		Dir: dir, Jobs: []prometheus.Job{{Name: "none", Addresses: []string{"127.0.0.1:1"}}},
	})
	require.NoError(t, err)
	t.Cleanup(s.Kill)
	outcomes, err := history.ReadOutcomes(t.Context(), history.OutcomeConfig{
		Server: history.Server{URL: s.URL}, Namespace: "media", From: begin, To: begin.Add(2 * day), Load: true,
	})
	require.NoError(t, err)
	found := outcomes.Policies
	require.Len(t, found, 1)
	require.Equal(t, "media/resize", found[0].Namespace+"/"+found[0].Name)
	requireCourse(t, outcomes.Course)
	require.InDelta(t, want.scaled.LateSeconds, found[0].LateReasons["TooManyReplicas"], 0.02*want.scaled.LateSeconds)
	for name, of := range map[string]struct{ want, got history.Outcome }{
		"scaled": {want.scaled, found[0].Scaled}, "in mode Recommend": {want.recommend, found[0].Recommend},
	} {
		for _, number := range []struct{ want, got float64 }{
			{of.want.KnownSeconds, of.got.KnownSeconds},
			{of.want.LateSeconds, of.got.LateSeconds},
			{of.want.RunningSeconds, of.got.RunningSeconds},
			{of.want.ReplicaSeconds, of.got.ReplicaSeconds},
			{of.want.PeakSeconds, of.got.PeakSeconds},
			{of.want.WholeSeconds, of.got.WholeSeconds},
		} {
			require.Positive(t, number.got)
			require.InEpsilon(t, number.want, number.got, 0.01, "%s: %+v, %+v", name, of.want, of.got)
		}
	}
}

// requireCourse checks an hour of the leader a, one without samples, and one of the leader b.
func requireCourse(t *testing.T, course []history.Step) {
	t.Helper()
	require.Len(t, course, 48)
	require.Equal(t, history.Step{Start: course[0].Start.Add(21 * time.Hour)}, course[21], "unknown is not 0")
	require.Nil(t, course[5].Replicas, "it did not scale")
	for _, hour := range []int{5, 14, 40} {
		require.InEpsilon(t, 29.9, *course[hour].Load, 0.02)
		require.InEpsilon(t, 590.0, *course[hour].Backlog, 0.02)
		require.InDelta(t, 1, *course[hour].WithLoad, 0)
	}
	for _, hour := range []int{14, 40} {
		require.InEpsilon(t, float64(1+hour%5), *course[hour].Replicas, 0.02)
		require.InDelta(t, 5, *course[hour].Peak, 0)
		require.InDelta(t, 1, *course[hour].Scaled, 0)
	}
}
