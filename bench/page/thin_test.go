// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALongSeriesKeepsItsPeaksAndGaps(t *testing.T) {
	const points = 7 * 24 * 360 // a week in steps of 10 s
	s := Series{Name: "in", Step: true}
	for i := range points {
		s.Seconds = append(s.Seconds, float64(10*i))
		s.Values = append(s.Values, new(100+50*math.Sin(float64(i)/500)))
	}
	s.Values[12345], s.Values[23456], s.Values[34567] = new(900.0), new(0.5), nil
	got := s.thin()
	require.LessOrEqual(t, len(got.Seconds), mostPoints)
	require.Greater(t, len(got.Seconds), mostPoints/2)
	require.Equal(t, s.Name, got.Name)
	require.True(t, got.Step)
	at := map[float64]*float64{}
	for i, seconds := range got.Seconds {
		at[seconds] = got.Values[i]
	}
	for _, i := range []int{0, 12345, 23456, 34567} {
		value, isKept := at[s.Seconds[i]]
		require.True(t, isKept, "point %d", i)
		require.Equal(t, s.Values[i], value)
	}
	require.NoError(t, got.check())
}

func TestAShortSeriesKeepsAllPoints(t *testing.T) {
	s := Series{Seconds: make([]float64, mostPoints), Values: Known(make([]float64, mostPoints)...)}
	require.Equal(t, s, s.thin())
}
