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
	for name, test := range map[string]struct {
		points []Point
		fits   bool // above the points
	}{
		"in a corner": {[]Point{{"a", 1, 0}, {"b", 1, 0}, {"c", 1.1, 0.1}, {"far", 10, 0}, {"high", 1, 9}}, true},
		"all at the upper end": {
			[]Point{{"a", 6, 9}, {"b", 6, 9}, {"c", 6, 9}, {"d", 6, 9}, {"e", 6, 9}, {"f", 6, 9}}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlot(Scatter{Points: test.points})
			for i, one := range p.Dots {
				if test.fits {
					require.LessOrEqual(t, one.LabelY, one.Y)
				}
				require.Greater(t, one.LabelY, 0.0)
				require.Less(t, one.LabelY, areaBottom+1)
				for _, other := range p.Dots[:i] {
					require.False(t, one.near(other) && math.Abs(one.LabelY-other.LabelY) < lineHeight-1e-9, "%v %v", one, other)
				}
			}
		})
	}
}

func TestThePlotShowsTheFirstPointAboveTheOthers(t *testing.T) {
	p := newPlot(Scatter{Points: []Point{{"a", 1, 0}, {"b", 1, 0}, {"far", 10, 0}}})
	require.Equal(t, []string{"far", "b", "a"}, []string{p.Dots[0].Name, p.Dots[1].Name, p.Dots[2].Name})
	require.True(t, p.Dots[2].First)
	require.False(t, p.Dots[2].Leader)
	require.True(t, p.Dots[1].Leader)
	require.Equal(t, "end", p.Dots[0].Anchor, "a name in the right half is left of its point")
}

func TestOnlySomePointsHaveTheirNames(t *testing.T) {
	p := newPlot(Scatter{Names: 2, Points: []Point{
		{"total", 1, 1}, {"a-long-namespace/and-its-policy", 2, 2}, {"third", 1, 1},
	}})
	require.Equal(t, []string{"", "…amespace/and-its-policy", "total"}, []string{
		p.Dots[0].Name, p.Dots[1].Name, p.Dots[2].Name,
	})
	require.Contains(t, p.Dots[0].Title, "third: 1")
	require.Contains(t, p.Dots[1].Title, "a-long-namespace/and-its-policy: 2")
}
