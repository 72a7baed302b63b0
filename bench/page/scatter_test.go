// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnAxisEndsAtARoundNumber(t *testing.T) {
	for most, want := range map[float64][2]float64{
		0: {1, 1}, 1: {0.5, 1}, 4: {1, 4}, 7.2: {2, 8}, 143.2: {50, 150}, 0.05: {0.02, 0.06}, 5000: {2000, 6000},
	} {
		step, end := axis(most)
		require.InDelta(t, want[0], step, 1e-9, "step up to %v", most)
		require.InDelta(t, want[1], end, 1e-9, "end of %v", most)
	}
}

func TestNoNameIsOnAnother(t *testing.T) {
	p := newPlot(Scatter{Points: []Point{{"a", 1, 0}, {"b", 1, 0}, {"c", 1.1, 0.1}, {"far", 10, 0}, {"high", 1, 9}}})
	for i, one := range p.Dots {
		require.LessOrEqual(t, one.LabelY, one.Y)
		require.Greater(t, one.LabelY, 0.0)
		for _, other := range p.Dots[:i] {
			require.False(t, one.near(other) && math.Abs(one.LabelY-other.LabelY) < lineHeight, "%v %v", one, other)
		}
	}
	require.True(t, p.Dots[0].First)
	require.False(t, p.Dots[0].Leader)
	require.True(t, p.Dots[1].Leader)
	require.Equal(t, "end", p.Dots[3].Anchor, "a name in the right half is left of its point")
}
