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

func TestAFewPoliciesOnARealControlPlane(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	var out bytes.Buffer
	path := filepath.Join(t.TempDir(), "policies.json")
	require.NoError(t, bench{
		policies: 8, steady: 6 * time.Second, jsonPath: path, out: &out, progress: os.Stderr,
		stage: stage.Config{
			HPASyncPeriod: time.Second, AdapterFlags: []string{"--poll-interval=1s", "--rate-window=3s"},
			Progress: os.Stderr,
		},
	}.run(t.Context()))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var written map[string]any
	require.NoError(t, json.Unmarshal(text, &written))
	require.InDelta(t, 8, written["policies"], 0)
	require.Greater(t, written["all_hpas_seconds"], written["first_hpa_seconds"])
	require.Positive(t, written["status_writes_per_second"], "loads of up to 90/s on one replica of 25/s each")
	require.Contains(t, out.String(), "all HorizontalPodAutoscalers after, s")
}

func TestRunRefusesWhatMakesNoSense(t *testing.T) {
	for flags, want := range map[string]string{
		"-policies=0": "-policies is 0: it must be from 1 to 10000", "-steady=0s": "they must be at least 0s and 1s",
		"-clients=3": "-clients",
	} {
		require.ErrorContains(t, run(t.Context(), []string{flags}, io.Discard, io.Discard), want)
	}
	require.ErrorIs(t, run(t.Context(), []string{"-h"}, io.Discard, io.Discard), flag.ErrHelp)
}
