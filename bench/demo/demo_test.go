// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func TestTheDemoOnRealParts(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real broker and a real control plane")
	}
	ctrl.SetLogger(logr.Discard())
	dir := t.TempDir()
	var out strings.Builder
	d := newDemo(options{short: true, out: dir}, &out, false)
	d.scenario.flags = append(d.scenario.flags, stage.PatientLease()...)
	returned, err := d.run(t.Context())
	require.NoError(t, err, out.String())

	text, err := os.ReadFile(filepath.Join(dir, "result.json"))
	require.NoError(t, err)
	var r run.Result
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&r))
	require.Equal(t, returned, r)
	requireFollowed(t, d.scenario, r)

	text, err = os.ReadFile(filepath.Join(dir, "demo.html"))
	require.NoError(t, err)
	require.Contains(t, string(text), "<!doctype html>")
	for _, part := range []string{d.scenario.manifest(), header(), "Verdict: all limits are met"} {
		require.Contains(t, out.String(), part)
	}
}

// requireFollowed checks what follows from the load alone, on a machine of any speed.
func requireFollowed(t *testing.T, s scenario, r run.Result) {
	t.Helper()
	got, length := r.Contenders[0], r.LoadSeconds+r.WatchSeconds
	messages, usage := got.Messages, got.Usage
	one := 1 / s.serviceTime.Seconds() // the capacity of a replica
	busy := s.high * s.busy.Seconds()
	require.Greater(t, length, s.fall().Seconds())
	require.GreaterOrEqual(t, float64(messages.Published), s.low*s.calm.Seconds()+busy)
	last := got.Samples[len(got.Samples)-1]
	require.LessOrEqual(t, float64(last.Published), s.low*length+busy+1)
	require.Equal(t, messages.Published, messages.Done)
	require.LessOrEqual(t, messages.Late, messages.Done)
	require.InDelta(t, s.objective.Seconds(), r.LatencyObjectiveSeconds, 0)
	require.Equal(t, run.Met, r.Verdict.Outcome)

	require.Greater(t, float64(usage.MostReplicas)*one, s.high, "fewer replicas never drain the backlog")
	require.LessOrEqual(t, usage.MostReplicas, s.maxReplicas)
	require.Equal(t, 1, *last.SpecReplicas)
	require.Greater(t, usage.ReplicaHours*time.Hour.Seconds(), float64(messages.Done)*s.serviceTime.Seconds(),
		"a replica works on one message at a time")
	require.Less(t, usage.ReplicaHours*time.Hour.Seconds(), float64(usage.MostReplicas)*length)

	const clocks = 2 * time.Millisecond // both times have whole milliseconds
	require.GreaterOrEqual(t, messages.Latencies.P50, s.serviceTime-clocks,
		"no message is done before its processing ends")
	require.GreaterOrEqual(t, messages.Latencies.P99, messages.Latencies.P50)
	require.Regexp(t, `Pulsar \S+, Kubernetes v1\.\d+\.\d+$`, got.Setting)
}
