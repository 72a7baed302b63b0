// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// counters returns a sample of one instance.
func counters(seconds float64, calls int64, busy time.Duration) backlog.InstancesSample {
	return backlog.InstancesSample{
		At:        begun().Add(time.Duration(seconds * float64(time.Second))),
		Instances: []backlog.InstanceSample{{ID: coverageName, Calls: &calls, BusyTime: &busy}},
	}
}

func TestCoverageIsTheMedianOfTheWindows(t *testing.T) {
	got := covered([]backlog.InstancesSample{
		counters(0, 1000, 0),
		counters(2, 1100, 1900*time.Millisecond), // 19 ms a call, 1 ms between two
		counters(4, 1200, 3800*time.Millisecond),
		counters(6, 1210, 5790*time.Millisecond), // the machine stalled within a call
		counters(7, 1210, 5790*time.Millisecond), // and did not recover
		{At: begun().Add(8 * time.Second), Silent: 1},
		counters(10, 1400, 8*time.Second), // the start of the window is unknown
	})
	require.InDelta(t, 19, *got.CallMillis, 1e-9)
	require.InDelta(t, 0.95, *got.Busy, 1e-9)
	require.InDelta(t, 1, *got.OverheadMillis, 1e-9)
	require.Equal(t, coverage{}, covered(nil))
}

func TestThereIsMoreToDoThanAnInstanceCan(t *testing.T) {
	done := 0.0
	for _, cost := range coverageTimes() {
		done += (coverageWindows + 1) * coverageWindow.Seconds() / cost.Seconds()
	}
	require.Greater(t, float64(coverageMessages()), done+1000, "and a full receive queue")
}
