// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func TestMetricsAreServedOnRealPartsByBothRoutes(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real broker and control plane")
	}
	var out bytes.Buffer
	path := filepath.Join(t.TempDir(), "metrics.json")
	require.NoError(t, bench{
		efforts:  []effort{{clients: 1, requests: 10, limit: time.Minute}, {clients: 8, requests: 40, limit: time.Minute}},
		stage:    stage.Config{AdapterFlags: []string{"--poll-interval=1s", "--rate-window=4s"}, Progress: os.Stderr},
		jsonPath: path, out: &out, progress: os.Stderr,
	}.run(t.Context()))

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var written report
	require.NoError(t, json.Unmarshal(text, &written))
	require.NotEmpty(t, written.Kubernetes)
	require.NotEmpty(t, written.Pulsar)
	require.Len(t, written.Results, 8, "two routes, two metrics, two efforts")
	for _, one := range written.Results {
		require.Zero(t, one.Errors)
		require.Equal(t, map[int]int{1: 10, 8: 40}[one.Clients], one.Requests)
		require.Equal(t, "HTTP/2.0", one.Protocol)
		require.Equal(t, "application/vnd.kubernetes.protobuf", one.ContentType)
		require.NotNil(t, one.P50Milliseconds)
		require.NotNil(t, one.P99Milliseconds)
		require.LessOrEqual(t, *one.P50Milliseconds, *one.P99Milliseconds)
		require.Contains(t, out.String(), one.Metric)
	}
}

func TestRunRefusesFlagsThatAreUnknown(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), []string{"-clients=3"}, io.Discard, io.Discard), "-clients")
	require.ErrorIs(t, run(t.Context(), []string{"-h"}, io.Discard, io.Discard), flag.ErrHelp)
}
