// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestReplayOnRealParts(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real broker and a real control plane")
	}
	ctrl.SetLogger(logr.Discard())
	dir := t.TempDir()
	path := filepath.Join(dir, "replay.json")
	var out bytes.Buffer
	args := []string{"-scenario=wave", "-seconds=20", "-out=" + path, "-plots=" + dir}
	require.NoError(t, run(t.Context(), args, &out, os.Stderr))
	require.Contains(t, out.String(), "wave")
	require.FileExists(t, filepath.Join(dir, "replay-wave.html"))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	r, err := decode(text)
	require.NoError(t, err)
	require.Len(t, r.Scenarios, 1)
	one := r.Scenarios[0]
	require.Equal(t, 20, one.Seconds)
	require.NotEmpty(t, r.Pulsar)
	require.NotEmpty(t, r.Kubernetes)

	// What follows from the load alone, on a machine however slow: 20 s are too short for the two to agree.
	require.GreaterOrEqual(t, *one.Real.ReplicaHours, 20.0/3600, "there is always one replica")
	require.InDelta(t, 0, *one.Real.LatePct, 100)
	require.NotNil(t, one.ReplicaHoursRatio)
	require.NotNil(t, one.Within)
	require.NotNil(t, one.Measured.Redelivered, "all messages were done and the broker answered")
	require.NotNil(t, one.Measured.MessagesPerEntry)
	require.GreaterOrEqual(t, *one.Measured.MessagesPerEntry, 1.0)
	most := 0.0
	for _, waiting := range one.Trace.RealBacklog {
		most = max(most, waiting)
	}
	require.Greater(t, most, 0.0, "the load is more than a replica's for a while")
}
