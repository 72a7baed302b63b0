// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/picture"
)

// worked is a successful demo of 160 s: 5 replicas from 6 s after the step on, and 1 at the end.
func worked() played {
	p := played{
		scenario: full(), begun: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), pulsar: "4.0.8", kubernetes: "v1.36.3",
		messages: load.Result{
			Counts: load.Counts{Done: 11000, Late: 11}, Due: 11000, Published: 11000, LateRatio: 0.001,
			Latencies: load.Latencies{Count: 11000, P50: 8 * time.Second, P99: 28 * time.Second},
		},
	}
	for second := range 161 {
		replicas := 1
		if second >= 26 && second < 140 {
			replicas = 5
		}
		p.samples = append(p.samples, of(float64(second), replicas, replicas))
	}
	return p
}

func TestResult(t *testing.T) {
	r, err := worked().result()
	require.NoError(t, err)
	require.InDelta(t, 80, r.LoadSeconds, 0)
	require.InDelta(t, 80, r.WatchSeconds, 0)
	c := r.Contenders[0]
	require.Equal(t, 5, c.Usage.MostReplicas)
	require.Equal(t, 2, c.Usage.ScaleChanges)
	require.InDelta(t, (160+4*114)/3600.0, c.Usage.ReplicaHours, 1e-9)
	require.Equal(t, run.Verdict{Outcome: run.Met, Checks: []run.Check{
		{Name: "reaction", Limit: "6m0s", Measured: "6.0s", Met: true},
		{Name: "replicas at the end", Limit: "1", Measured: "1", Met: true},
		{Name: "messages without a result", Limit: "0", Measured: "0", Met: true},
	}}, r.Verdict)
	require.Equal(t, "30 s objective met for 99.9% of messages, with 23% fewer replica-hours than 5 replicas all the time",
		r.Page().Title)
	text := r.Text(width)
	for _, part := range []string{
		"80 s of load, watched for 80 s more", "Pulsar 4.0.8", "Latency counts from the publication",
	} {
		require.Contains(t, text, part)
	}
	require.NotContains(t, text, "Differs")

	p := worked()
	p.scenario = short()
	require.Equal(t, []string{
		"kube-controller-manager --horizontal-pod-autoscaler-sync-period=5s", "adapter --poll-interval=2s",
		"adapter --rate-window=4s",
	}, p.differs())
	p.samples = nil
	_, err = p.result()
	require.ErrorContains(t, err, "replicas are unknown")
}

func TestVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*played)
		want   []string
	}{
		"nothing is wrong": {change: func(*played) {}},
		"replicas never rose": {
			func(p *played) {
				for i := range p.samples {
					p.samples[i] = of(float64(i), 1, 1)
				}
			},
			[]string{"reaction: no scale-up"},
		},
		"replicas rose before the load did": {
			func(p *played) {
				for i := range 30 {
					p.samples[i] = of(float64(i), 5, 5)
				}
			},
			[]string{"reaction: no scale-up"},
		},
		"replicas stayed": {
			func(p *played) { p.samples = p.samples[:130] }, []string{"replicas at the end: 5, where the limit is 1"},
		},
		"a message was lost": {
			func(p *played) { p.messages.Missing = 1 }, []string{"messages without a result: 1, where the limit is 0"},
		},
		"everything is wrong at once": {
			func(p *played) { p.samples, p.messages.Missing = p.samples[30:100], 3 },
			[]string{"replicas at the end: 5", "messages without a result: 3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := worked()
			test.change(&p)
			c := run.Contender{Messages: p.messages}
			for _, one := range p.samples {
				c.Samples = append(c.Samples, one.Sample)
			}
			v := p.verdict(c)
			err := failed(v)
			if len(test.want) == 0 {
				require.NoError(t, err)
				require.Equal(t, run.Met, v.Outcome)
				return
			}
			require.Equal(t, run.Missed, v.Outcome)
			for _, want := range test.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestAPageIsDrawnAgain(t *testing.T) {
	dir := t.TempDir()
	recorded := filepath.Join(dir, "result.json")
	r, err := worked().result()
	require.NoError(t, err)
	require.NoError(t, output.JSON(recorded, r))
	var out, complaints bytes.Buffer
	require.Zero(t, program(t.Context(), []string{"-from", recorded, "-out", dir}, &out, &complaints), complaints.String())
	got, err := os.ReadFile(filepath.Join(dir, "demo.html"))
	require.NoError(t, err)
	var want bytes.Buffer
	require.NoError(t, r.Page().Write(&want))
	require.Equal(t, want.String(), string(got))
	require.Equal(t, exitFailed, program(t.Context(), []string{"-from", dir}, &out, &complaints))
	require.Contains(t, complaints.String(), "demo: -from: ")
}

func TestThePictureShowsTheRecordedDemo(t *testing.T) {
	dir := t.TempDir()
	recorded := filepath.Join("testdata", "result.json")
	require.Zero(t, program(t.Context(), []string{"-from", recorded, "-out", dir}, io.Discard, io.Discard))
	got, err := os.ReadFile(filepath.Join(dir, "demo.html"))
	require.NoError(t, err)
	picture.Shows(t, filepath.Join("..", "..", "docs", "demo.png"), got)
}
