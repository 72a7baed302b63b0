// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/recording"
)

const exampleTraces = "testdata/traces"

// traced runs the example with one setting.
func traced(t *testing.T, args ...string) (printed, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "traces.json")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), append([]string{
		"-traces=" + exampleTraces, "-scenario=\\.10s\\.30s$", "-seeds=1", "-out=" + path,
	}, args...), &out, io.Discard))
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	return out.String(), string(written)
}

func TestTracesHaveTheKeysThatReadersRelyOn(t *testing.T) {
	printed, text := traced(t, "-controller=^(simple|keda-expert|capacity)$")
	var rows []map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &rows))
	require.Len(t, rows, 3)
	for i, controller := range []string{"keda-expert", "simple", "capacity"} {
		require.Equal(t, []string{
			"avoidable_late_pp", "changes", "controller", "cost_over_oracle", "setting", "trace",
		}, keys(rows[i]))
		require.Equal(t, "four-days", rows[i]["trace"])
		require.Equal(t, "start 10s, objective 30s", rows[i]["setting"])
		require.Equal(t, controller, rows[i]["controller"])
		require.Positive(t, rows[i]["cost_over_oracle"])
		require.Contains(t, printed, controller)
	}
}

func TestEqualSeedsGiveEqualTraces(t *testing.T) {
	printed, text := traced(t, "-controller=^simple$", "-seed=3")
	again, same := traced(t, "-controller=^simple$", "-seed=3")
	require.Equal(t, printed, again)
	require.Equal(t, text, same)
	_, other := traced(t, "-controller=^simple$", "-seed=4")
	require.NotEqual(t, text, other)
}

func TestATraceIsScaledToItsMean(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join(exampleTraces, "four-days.csv"))
	require.NoError(t, err)
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, err = writer.Write(text)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	for name, content := range map[string][]byte{
		"packed.csv.gz": packed.Bytes(), "plain.csv": text, "README.md": []byte("no trace"),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	traces, err := readTraces(dir, 1)
	require.NoError(t, err)
	require.Len(t, traces, 2)
	require.Equal(t, "packed", traces[0].name)
	require.Equal(t, traces[1].episodes, traces[0].episodes)
	recorded, err := recording.Read(bytes.NewReader(text))
	require.NoError(t, err)
	require.InDelta(t, 5*50, traces[1].factor*recorded.Mean(), 1e-9)

	episode := traces[1].episodes[0]
	s := traces[1].scenario(episode, setting{time.Minute, 5 * time.Minute})
	require.Equal(t, "plain.largest-rise.60s.300s", s.Name)
	require.Equal(t, 6*3600, s.Seconds)
	require.InDelta(t, traces[1].factor*episode.Rate(600), s.Rate(600), 1e-9)
	require.Equal(t, traceMax, s.Max)
	traces[1].factor *= 10
	s = traces[1].scenario(episode, settings()[0])
	require.InDelta(t, 2*traces[1].factor*episode.Peak()/50, s.Max, 1, "there are replicas for the peak")
}

func TestProblemsOfTracesNameTheFile(t *testing.T) {
	for name, tt := range map[string]struct{ file, text, want string }{
		"an empty directory": {"load.txt", "", "has no file that ends in .csv or .csv.gz"},
		"no gzip file":       {"a.csv.gz", "\x1f\x8b", "reading trace a.csv.gz: decompressing"},
		"no messages":        {"a.csv", "timestamp,value\n2026-03-02 09:00:00,0\n2026-03-02 09:01:00,0\n", "no messages"},
		"a short one":        {"a.csv", "timestamp,value\n2026-03-02 09:00:00,1\n2026-03-02 09:01:00,1\n", "no 6 hours"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, tt.file), []byte(tt.text), 0o600))
			require.ErrorContains(t, run(t.Context(), []string{"-traces=" + dir}, io.Discard, io.Discard), tt.want)
		})
	}
	for flag, want := range map[string]string{
		"-traces=testdata/no": "no such file", "-scenario=^$": "all are run without it",
	} {
		args := []string{"-traces=" + exampleTraces, flag}
		require.ErrorContains(t, run(t.Context(), args, io.Discard, io.Discard), want)
	}
}
