// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/picture"
)

func TestThePageHasWhatTheChartsAndTheSummaryHave(t *testing.T) {
	o := filmed(t)
	s := summarize(o)
	got := s.page(o.scenario)
	require.Equal(t, []page.Verdict{
		{Name: "scale-up", Limit: "after the load has stepped up", Measured: "after 5.2 s", Met: true},
		{Name: "scale-down", Limit: "1 replica at the end", Measured: "1", Met: true},
		{Name: "messages processed", Limit: "all of 11000", Measured: "11000", Met: true},
	}, got.Verdicts)
	require.Equal(t, []string{"p99 latency, from publication to the end of processing", "28.0 s"}, got.Tables[0].Rows[2])
	require.Equal(t, "30 s objective met for 99.9% of messages, with 38% fewer replica-hours than 5 replicas all the time",
		got.Title)
	require.Len(t, got.Charts, 4)
	latency := got.Charts[3]
	require.Equal(t, 30.0, *latency.Objective)
	require.Nil(t, latency.Series[0].Values[1], "without a message it is unknown")
	require.Equal(t, 5.0, *latency.Series[0].Values[39])
	backlog, replicas := got.Charts[1].Series[0], got.Charts[2].Series
	require.Len(t, backlog.Seconds, len(o.samples))
	require.Equal(t, 160.0, backlog.Seconds[len(o.samples)-1])
	require.Equal(t, float64(o.samples[40].backlog()), *backlog.Values[40])
	require.Equal(t, "desired (spec.replicas)", replicas[1].Name)
	require.True(t, replicas[1].Step)
}

func TestAPageIsWrittenOfEveryOutcome(t *testing.T) {
	for name, o := range map[string]outcome{
		"a whole demo":         filmed(t),
		"one without a sample": worked(),
		"one without anything": {scenario: full()},
	} {
		t.Run(name, func(t *testing.T) {
			s := summarize(o)
			var text bytes.Buffer
			require.NoError(t, s.page(o.scenario).Write(&text))
			require.Contains(t, text.String(), s.title())
		})
	}
}

func TestThePageShowsWhatFailed(t *testing.T) {
	o := filmed(t)
	o.timeline, o.done = o.timeline[:3], 1
	s := summarize(o)
	require.Error(t, s.verdict())
	require.Equal(t, "Replicas did not follow the load, or messages were not processed", s.title())
	verdicts := s.page(o.scenario).Verdicts
	require.Equal(t, page.Verdict{
		Name: "scale-up", Limit: "after the load has stepped up", Measured: "none",
	}, verdicts[0])
	require.False(t, verdicts[2].Met)
}

func TestAPageIsDrawnAgain(t *testing.T) {
	dir := t.TempDir()
	recorded := filepath.Join(dir, "summary.json")
	s := summarize(filmed(t))
	require.NoError(t, output.JSON(recorded, s))
	var out, complaints bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"-from", recorded, "-out", dir}, &out, &complaints), complaints.String())
	got, err := os.ReadFile(filepath.Join(dir, "demo.html"))
	require.NoError(t, err)
	var want bytes.Buffer
	require.NoError(t, s.page(full()).Write(&want))
	require.Equal(t, want.String(), string(got))
	require.Equal(t, exitFailed, run(t.Context(), []string{"-from", dir}, &out, &complaints))
	require.Contains(t, complaints.String(), "demo: -from: ")
}

func TestThePictureShowsTheRecordedDemo(t *testing.T) {
	dir := t.TempDir()
	recorded := filepath.Join("testdata", "summary.json")
	require.Zero(t, run(t.Context(), []string{"-from", recorded, "-out", dir}, io.Discard, io.Discard))
	got, err := os.ReadFile(filepath.Join(dir, "demo.html"))
	require.NoError(t, err)
	picture.Shows(t, filepath.Join("..", "..", "docs", "demo.png"), got)
}
