// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadTakesEitherKindOfTime(t *testing.T) {
	tests := map[string]string{
		"seconds":                      "time,rate\n0,10\n60,20\n120,0\n",
		"seconds of the Unix epoch":    "time,rate\n1700000000,10\n1700000060,20\n1700000120,0\n",
		"RFC 3339":                     "time,rate\n2026-03-01T09:00:00Z,10\n2026-03-01T09:01:00Z,20\n2026-03-01T09:02:00Z,0\n",
		"time zones that change":       "time,rate\n2026-03-29T01:59:00+01:00,10\n2026-03-29T03:00:00+02:00,20\n2026-03-29T03:01:00+02:00,0\n",
		"the columns the other way":    "rate,time\n10,0\n20,60\n0,120\n",
		"quotes, spaces and Windows":   "time, rate\r\n\"0\", 10\r\n60, \"20\"\r\n120, 0\r\n",
		"the mark of a spreadsheet":    "\ufefftime,rate\n0,10\n60,20\n120,0\n",
		"fractions and great exponent": "time,rate\n0.5,1e1\n60.5,20.0\n1.205e2,0\n",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			load, err := Read(strings.NewReader(text), 10*time.Minute)
			require.NoError(t, err)
			require.Equal(t, 120, load.Seconds())
			for second, want := range map[float64]float64{-5: 10, 0: 10, 30: 15, 60: 20, 90: 10, 120: 0, 500: 0} {
				require.InDelta(t, want, load.Rate(second), 1e-6, "at %v s", second)
			}
		})
	}
}

func TestReadReportsProblemsWithTheirLine(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"an empty file":                {"", "first line must be time,rate"},
		"no header":                    {"0,10\n60,20\n", `line 1: the columns are ["0" "10"]`},
		"an unknown column":            {"time,rate,host\n0,10,a\n", `line 1: the columns are ["time" "rate" "host"]`},
		"a column twice":               {"time,time\n0,10\n", "line 1"},
		"a row too short":              {"time,rate\n0,10\n60\n", "line 3"},
		"an invalid rate":              {"time,rate\n0,10\n60,many\n", `line 3: rate "many" must be a number`},
		"a rate that Prometheus lacks": {"time,rate\n0,NaN\n60,1\n", `line 2: rate "NaN"`},
		"a rate below zero":            {"time,rate\n0,10\n60,-1\n", `line 3: rate "-1"`},
		"a rate without bounds":        {"time,rate\n0,10\n60,+Inf\n", `line 3: rate "+Inf"`},
		"replicas below zero":          {"time,rate,replicas\n0,1,-1\n", `line 2: replicas "-1" must be a whole number`},
		"half a replica":               {"time,rate,replicas\n0,1,0.5\n", `line 2: replicas "0.5"`},
		"an invalid time": {
			"time,rate\nyesterday,10\n",
			`line 2: time "yesterday" must be seconds, or RFC 3339`,
		},
		"an infinite time":  {"time,rate\nInf,10\n", `line 2: time "Inf"`},
		"rows out of order": {"time,rate\n60,10\n0,20\n", `line 3: time "0" is not after`},
		"a time twice":      {"time,rate\n60,10\n60,20\n", `line 3: time "60" is not after`},
		"a gap": {
			"time,rate\n0,10\n60,10\n\n1000,20\n",
			`line 5: time "1000" is 15m40s after the row before, more than 10m0s`,
		},
		"a gap of ages":               {"time,rate\n0,10\n1e300,20\n", "line 3"},
		"seconds after dates":         {"time,rate\n2026-03-01T09:00:00Z,10\n60,20\n", "line 3"},
		"dates after seconds":         {"time,rate\n0,10\n2026-03-01T09:00:00Z,20\n", "line 3"},
		"one row":                     {"time,rate\n0,10\n", "there are 1 rows below the header"},
		"two rows in the same second": {"time,rate\n0,10\n0.5,10\n", "at least two, a second apart"},
		"seconds since another time": {
			"timestamp,messages\n0,10\n", `line 2: timestamp "0" must be seconds or milliseconds of Unix time`,
		},
		"microseconds": {
			"timestamp,messages\n1700000000000000,10\n", `timestamp "1700000000000000" must be seconds or milliseconds`,
		},
		"less than no message": {"timestamp,messages\n1700000000,-1\n", `line 2: messages "-1" must be a number`},
		"a timestamp without messages": {
			"timestamp,rate\n1700000000,1\n", `line 1: the columns are ["timestamp" "rate"]`,
		},
		"too many messages for their time": {
			"timestamp,messages\n1700000000,1e12\n1700000001,1\n", "are timestamps in seconds?",
		},
		"a quote that is left open":      {"time,rate\n0,\"10\n60,20\n", "line 3"},
		"a header that cannot be parsed": {"ti\"me,rate\n", "line 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tt.text), 10*time.Minute)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestReadKnowsReplicasAndStart(t *testing.T) {
	const text = "time,replicas,rate\n1700000000,3,10\n1700000060,,20\n1700000120,5,0\n"
	load, err := Read(strings.NewReader(text), time.Hour)
	require.NoError(t, err)
	start, known := load.Start()
	require.True(t, known)
	require.Equal(t, time.Unix(1_700_000_000, 0).UTC(), start)
	require.True(t, load.HasReplicas())
	require.Equal(t, []float64{10, 20, 0}, load.Rates())
	for second, want := range map[int]int{0: 3, 59: 3, 120: 5, 999: 5} {
		replicas, known := load.Replicas(second)
		require.True(t, known, "%d s", second)
		require.Equal(t, want, replicas, "%d s", second)
	}
	for _, second := range []int{-1, 60, 119} {
		_, known := load.Replicas(second)
		require.False(t, known, "%d s", second)
	}
	load, err = Read(strings.NewReader("time,rate\n0,10\n60,20\n"), time.Hour)
	require.NoError(t, err)
	require.False(t, load.HasReplicas())
	_, known = load.Start()
	require.False(t, known, "seconds are since an unknown time")
}

func TestReadTakesUnixTimeOfTheLastCentury(t *testing.T) {
	for _, text := range []string{"899131200,60\n899131260,120\n", "899131200000,60\n899131260000,120\n"} {
		load, err := Read(strings.NewReader("timestamp,messages\n"+text), time.Hour)
		require.NoError(t, err)
		start, known := load.Start()
		require.True(t, known)
		require.Equal(t, time.Date(1998, 6, 29, 14, 40, 0, 0, time.UTC), start)
		require.Equal(t, 120, load.Seconds())
	}
}

func TestReadSpreadsMessagesUntilTheNextRow(t *testing.T) {
	for name, text := range map[string]string{
		"RFC 3339":     "timestamp,messages\n2026-03-01T09:00:00Z,600\n2026-03-01T09:01:00Z,0\n2026-03-01T09:03:00Z,1200\n",
		"Unix time":    "messages,timestamp\n600,1772355600\n0,1772355660\n1200,1772355780\n",
		"milliseconds": "timestamp,messages\n1772355600000,600\n1772355660000,0\n1772355780000,1200\n",
		"psql": "timestamp,messages\n2026-03-01 09:00:00+00,600\n2026-03-01 10:01:00+01,0\n" +
			"2026-03-01 14:33:00+05:30,1200\n",
		"psql without a zone": "timestamp,messages\n2026-03-01 09:00:00,600\n2026-03-01 09:01:00,0\n2026-03-01 09:03:00,1200\n",
		"replicas":            "timestamp,messages,replicas\n1772355600,600,3\n1772355660,0,\n1772355780,1200,1\n",
		"spreadsheet":         "\ufefftimestamp,messages\r\n1772355600,600\r\n1772355660,0\r\n1772355780,1200\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			load, err := Read(strings.NewReader(text), time.Hour)
			require.NoError(t, err)
			require.Equal(t, 300, load.Seconds(), "the last row lasts as long as the one before")
			start, known := load.Start()
			require.True(t, known)
			require.Equal(t, time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), start)
			total := 0.0
			for second := range load.Seconds() {
				total += load.Rate(float64(second))
			}
			require.InDelta(t, 1800, total, 1e-6)
			for second, want := range map[float64]float64{0: 10, 59.9: 10, 60: 0, 179.9: 0, 180: 10, 300: 10} {
				require.InDelta(t, want, load.Rate(second), 1e-6, "at %v s", second)
			}
		})
	}
}

func TestReadAcceptsAnAllowedGap(t *testing.T) {
	load, err := Read(strings.NewReader("time,rate\n0,10\n3600,20\n"), time.Hour)
	require.NoError(t, err)
	require.InDelta(t, 15, load.Rate(1800), 1e-9)
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"time,rate\n0,10\n60,20\n", "rate,time\n1,2026-03-01T09:00:00Z\n2,2026-03-01T09:00:30+01:00\n",
		"time,rate\n-1e308,0\n1e308,0\n", "replicas,time,rate\n3,0,1\n,60,2\n",
		"timestamp,messages\n1700000000,5\n2023-11-14T22:15:20Z,9\n", "timestamp,messages\n1700000000,5\n1700000060,9\n",
		"", "time,rate\n\"", "\ufefftime,rate\n1,1\n",
	} {
		f.Add(seed)
	}
	if example, err := os.ReadFile("../testdata/day.csv"); err == nil {
		f.Add(string(example))
	}
	f.Fuzz(func(t *testing.T, text string) {
		load, err := Read(strings.NewReader(text), 10*time.Minute)
		if err != nil {
			require.NotContains(t, err.Error(), "\n", "one line tells it")
			return
		}
		length := load.Seconds()
		require.Positive(t, length)
		highest := 0.0
		for i, at := range load.at {
			require.False(t, math.IsNaN(at) || math.IsInf(at, 0))
			require.InDelta(t, load.rates[i], load.Rate(at), 1e-9*max(1, load.rates[i]))
			highest = max(highest, load.rates[i])
		}
		for part := range 11 {
			rate := load.Rate(float64(length) * float64(part) / 10)
			require.True(t, rate >= 0 && rate <= highest*(1+1e-9), "%v is between 0 and %v", rate, highest)
		}
	})
}
