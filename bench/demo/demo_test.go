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

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestTheDemoOnRealParts(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real broker and a real control plane")
	}
	ctrl.SetLogger(logr.Discard())
	dir := t.TempDir()
	var out strings.Builder
	d := newDemo(options{short: true, out: dir}, &out, false)
	returned, err := d.run(t.Context())
	require.NoError(t, err, out.String())

	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	require.NoError(t, err)
	var s summary
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&s))
	require.Equal(t, returned, s)
	requireFollowed(t, d.scenario, s)

	text, err = os.ReadFile(filepath.Join(dir, "demo.html"))
	require.NoError(t, err)
	require.Contains(t, string(text), "<!doctype html>")
	for _, part := range []string{d.scenario.manifest(), header(), "none lost", "Summary"} {
		require.Contains(t, out.String(), part)
	}
}

// requireFollowed checks what follows from the load alone, on a machine of any speed.
func requireFollowed(t *testing.T, s scenario, got summary) {
	t.Helper()
	one := 1 / s.serviceTime.Seconds() // the capacity of a replica
	busy := s.high * s.busy.Seconds()
	require.Greater(t, got.DurationSeconds, s.fall().Seconds())
	require.GreaterOrEqual(t, float64(got.MessagesPublished), s.low*s.calm.Seconds()+busy)
	require.LessOrEqual(t, float64(got.MessagesPublished), s.low*got.DurationSeconds+busy+1)
	require.Equal(t, got.MessagesPublished, got.MessagesDone)
	require.LessOrEqual(t, got.MessagesLate, got.MessagesDone)
	require.InDelta(t, s.objective.Seconds(), got.ObjectiveSeconds, 0)

	require.Greater(t, float64(got.ReplicasMax)*one, s.high, "fewer replicas never drain the backlog")
	require.LessOrEqual(t, got.ReplicasMax, s.maxReplicas)
	require.Equal(t, 1, got.ReplicasLast)
	require.Greater(t, got.ReplicaSeconds, float64(got.MessagesDone)*s.serviceTime.Seconds(),
		"a replica works on one message at a time")
	require.Less(t, got.ReplicaSeconds, float64(got.ReplicasMax)*got.DurationSeconds)
	require.NotNil(t, got.ReactionSeconds)
	require.Greater(t, *got.ReactionSeconds, 0.0)

	require.NotNil(t, got.WaitP50Seconds)
	require.NotNil(t, got.WaitP99Seconds)
	const clocks = 0.002 // both times have whole milliseconds
	require.GreaterOrEqual(t, *got.WaitP50Seconds, s.serviceTime.Seconds()-clocks,
		"no message is done before its processing ends")
	require.GreaterOrEqual(t, *got.WaitP99Seconds, *got.WaitP50Seconds)
	require.NotEmpty(t, got.PulsarVersion)
	require.Regexp(t, `^v1\.\d+\.\d+$`, got.KubernetesVersion)
}
