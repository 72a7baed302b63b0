// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

func sampleReport() report {
	r := report{
		Kubernetes: "v1.2.3", CPUs: 2, Policies: 300, CreatedSeconds: 1.5, FirstHPASeconds: 0.25, AllHPAsSeconds: 4.5,
		AllHPAsGoalSeconds: allHPAsGoal.Seconds(), KEDAAllHPAsSeconds: kedaAllHPAs.Seconds(),
	}
	r.setSteady(2*time.Minute, 1200, 120)
	return r
}

func TestReport(t *testing.T) {
	for name, write := range map[string]func(io.Writer) error{
		"table.txt":   sampleReport().writeTable,
		"report.json": sampleReport().writeJSON,
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			require.NoError(t, write(&got))
			golden := filepath.Join("testdata", name)
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o750))
				require.NoError(t, os.WriteFile(golden, got.Bytes(), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got.String())
		})
	}
}

func TestTheBudgetIsARefreshIn30SecondsAndTwoWritesAScale(t *testing.T) {
	r := sampleReport()
	require.InDelta(t, 10, r.StatusWritesPerSecond, 1e-9, "1200 in 2 minutes")
	require.InDelta(t, 1, r.ScalesPerSecond, 1e-9)
	require.InDelta(t, 300.0/30+2*1, r.StatusWritesBudgetPerSecond, 1e-9)
}

var errTest = errors.New("no")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errTest }

func TestReportFailsWhenItCannotBeWritten(t *testing.T) {
	require.ErrorIs(t, sampleReport().writeTable(brokenWriter{}), errTest)
	require.ErrorIs(t, sampleReport().writeJSON(brokenWriter{}), errTest)
}
