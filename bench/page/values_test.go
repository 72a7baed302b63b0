// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValuesAreTheLatestAtEvenTimes(t *testing.T) {
	chart := Chart{Series: []Series{
		{Name: "line", Seconds: []float64{1, 2, 3}, Values: []*float64{new(1.0), nil, new(2.0)}},
		{Name: "step", Seconds: []float64{0, 3.5}, Values: Known(4, 5), Step: true},
		{Name: "empty"},
	}}
	got := newValues(chart)
	require.Equal(t, "0.1 s", got.Every)
	at := map[string][]string{}
	for _, row := range got.Rows {
		at[row.Time] = row.Values
	}
	for time, want := range map[string][]string{
		"0:00": {"", "4", ""}, "0:01": {"1", "4", ""}, "0:01.9": {"1", "4", ""}, "0:02": {"unknown", "4", ""},
		"0:03": {"2", "4", ""}, "0:03.1": {"", "4", ""}, "0:03.5": {"", "5", ""},
	} {
		require.Equal(t, want, at[time], "at %s", time)
	}
	require.Equal(t, "0:03.5", got.Rows[len(got.Rows)-1].Time)
}

func TestALongChartHasFewRows(t *testing.T) {
	for name, test := range map[string]struct {
		last  float64
		every string
	}{
		"a second":         {1, "0.1 s"},
		"a demo":           {160, "2 s"},
		"a week":           {7 * 86400, "2 h"},
		"two years":        {730 * 86400, "192 h"},
		"a week and a bit": {7*86400 + 0.5, "2 h"},
	} {
		t.Run(name, func(t *testing.T) {
			got := newValues(Chart{Series: []Series{{Seconds: []float64{0, test.last}, Values: Known(1, 2), Step: true}}})
			require.Equal(t, test.every, got.Every)
			require.LessOrEqual(t, len(got.Rows), mostRows+2)
			require.Equal(t, []string{"2"}, got.Rows[len(got.Rows)-1].Values, "the last value is in the table")
		})
	}
}

func TestNumbersHaveFourDigits(t *testing.T) {
	for want, value := range map[string]float64{
		"0": 0, "0.3": 0.1 + 0.2, "12.35": 12.345678, "999.9": 999.94, "12346": 12345.6, "-1500": -1500,
		"0.00001235": 0.0000123456,
	} {
		require.Equal(t, want, number(value))
	}
}

func TestElapsedTimesReadAsAClock(t *testing.T) {
	for want, seconds := range map[string]float64{
		"0:00": 0, "0:25.3": 25.25, "1:35": 95, "2:00:00": 7200, "-0:05": -5, "1:00": 59.96,
	} {
		require.Equal(t, want, elapsed(seconds))
	}
}
