// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/golden"
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
	golden.Written(t, *update, "table.txt", sampleReport().writeTable)
	golden.JSON(t, *update, "report.json", sampleReport())
}

func TestTheBudgetIsARefreshAMinuteAndTwoWritesAScale(t *testing.T) {
	r := sampleReport()
	require.InDelta(t, 10, r.StatusWritesPerSecond, 1e-9, "1200 in 2 minutes")
	require.InDelta(t, 1, r.ScalesPerSecond, 1e-9)
	require.InDelta(t, 300.0/60+2*1, r.StatusWritesBudgetPerSecond, 1e-9)
}
