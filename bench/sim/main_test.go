// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunScoresControllersAgainstTheOracle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sim.json")
	var out bytes.Buffer
	args := []string{"-seed=7", "-seeds=1", "-held-out=2", "-controller=simple|capacity", "-scenario=step|held-out", "-out=" + path}
	require.NoError(t, run(t.Context(), args, &out, io.Discard))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var written report
	require.NoError(t, json.Unmarshal(text, &written))
	require.Len(t, written.Sets, 2)
	require.Equal(t, "suite", written.Sets[0].Name)
	for _, s := range written.Sets {
		require.Len(t, s.Controllers, 3)
		oracle := s.Controllers[0]
		require.Equal(t, "oracle", oracle.Controller)
		require.InDelta(t, 1, oracle.CostOverOracle, 1e-9)
		require.Zero(t, oracle.AvoidableLate)
		for _, c := range s.Controllers {
			require.NotEmpty(t, c.Scenarios)
			require.LessOrEqual(t, *c.CostOverOracleLow, c.CostOverOracle)
			require.GreaterOrEqual(t, *c.CostOverOracleHigh, c.CostOverOracle)
			require.Contains(t, out.String(), c.Controller)
		}
	}
}

func TestTheSameSeedGivesTheSameTable(t *testing.T) {
	tables := [2]bytes.Buffer{}
	for i := range tables {
		require.NoError(t, run(t.Context(), []string{"-seed=3", "-seeds=1", "-held-out=3", "-scenario=held-out", "-controller=capacity"}, &tables[i], io.Discard))
	}
	require.Equal(t, tables[0].String(), tables[1].String())
}

func TestFlagsAreChecked(t *testing.T) {
	for flag, want := range map[string]string{
		"-seeds=0": "-seeds is 0", "-controller=(": "-controller", "-scenario=(": "-scenario", "-fast": "-fast",
	} {
		require.ErrorContains(t, run(t.Context(), []string{flag}, io.Discard, io.Discard), want)
	}
}
