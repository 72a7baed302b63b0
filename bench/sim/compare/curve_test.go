// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/golden"
)

func TestACurveHasWhatEachObjectiveCosts(t *testing.T) {
	c := config(t)
	c.Source = "Prometheus"
	curve, err := NewCurve(t.Context(), c, []time.Duration{5 * time.Minute, time.Minute, 15 * time.Second})
	require.NoError(t, err)
	require.Len(t, curve.Points, 3, "that of the policy is one of them")
	short, own, long := curve.Points[0], curve.Points[1], curve.Points[2]
	require.True(t, own.IsPolicy)
	require.False(t, short.IsPolicy || long.IsPolicy)
	require.Greater(t, short.ReplicaHoursPerDay.Expected, long.ReplicaHoursPerDay.Expected)
	same, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.InDelta(t, own.ReplicaHoursPerDay.Expected, same.Contenders[0].ReplicaHours.Expected*24, 1e-9,
		"simulate says the same about this hour")
	require.Equal(t, same.Contenders[0].LateRatio, own.LateRatio)
	require.InDelta(t, 0.5, own.CostPerDay.Expected/own.ReplicaHoursPerDay.Expected, 1e-9, "half a coin for an hour")
	curve.AddLimit("maxReplicas", 20)
	curve.AddLimit("limit behind the Function", 8)
	require.Equal(t, "limit behind the Function", curve.Limits[0].By)
	require.Equal(t, Range{320, 400, 480}, curve.Limits[0].MessagesPerSecond)
	text := curve.Text(80)
	golden.Equal(t, *update, "curve.txt", []byte(text))
	documented, err := os.ReadFile("../../../docs/report.md")
	require.NoError(t, err)
	require.Contains(t, string(documented), "\n"+text+"```\n", "docs/report.md shows the same")
}

func TestACurveNeedsAPossibleConfig(t *testing.T) {
	c := config(t)
	c.Partitions = 0
	_, err := NewCurve(t.Context(), c, nil)
	require.ErrorContains(t, err, "there are 0 partitions")
}
