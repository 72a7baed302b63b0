// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func recording(t *testing.T, text string) Recording {
	t.Helper()
	r, err := Read(strings.NewReader(text))
	require.NoError(t, err)
	return r
}

func compressed(t *testing.T, text string) io.Reader {
	t.Helper()
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	_, err := io.WriteString(writer, text)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	return &buffer
}

func TestARecordingHasGaps(t *testing.T) {
	tests := map[string]string{
		"names of public traces": "timestamp,value\n2026-03-02 09:00:00,600\n2026-03-02 09:01:00,1200\n" +
			"2026-03-02 09:05:00,60\n2026-03-02 09:06:00,60\n",
		"other names and a zone": "period,count\n2026-03-02T09:00:00Z,600\n2026-03-02T09:01:00Z,1200\n" +
			"2026-03-02T10:05:00+01:00,60\n2026-03-02T09:06:00Z,60\n",
		"our own names": "timestamp,messages\n1772442000,600\n1772442060,1200\n1772442300,60\n1772442360,60\n",
		"rows without a value": "timestamp,value\n2026-03-02 09:00:00,600\n2026-03-02 09:01:00,1200\n" +
			"2026-03-02 09:02:00,\n2026-03-02 09:03:00,NaN\n2026-03-02 09:05:00,60\n2026-03-02 09:06:00,60\n",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			r := recording(t, text)
			require.Len(t, r.parts, 2)
			require.InDelta(t, 60, r.interval, 0)
			require.InDelta(t, 9*3600, r.midnight, 0)
			require.InDelta(t, 300, r.parts[1].begin, 0)
			for i, want := range [][]float64{{10, 20}, {1, 1}} {
				require.InDelta(t, 120, r.parts[i].length(), 0, "the row before a gap lasts as long as the others")
				require.InDelta(t, want[0], r.parts[i].Rate(30), 1e-9)
				require.InDelta(t, want[1], r.parts[i].Rate(90), 1e-9)
			}
			require.InDelta(t, 1920.0/240, r.Mean(), 1e-3, "a gap is no zero")
			same, err := Read(compressed(t, text))
			require.NoError(t, err)
			require.Equal(t, r, same)
		})
	}
}

func TestARecordingMayHaveRates(t *testing.T) {
	r := recording(t, "time,rate,replicas\n0,10,1\n60,20,\n300,5,2\n360,5,3\n")
	require.Len(t, r.parts, 2)
	require.InDelta(t, 15, r.parts[0].Rate(30), 1e-9)
	require.InDelta(t, (15*60+5*60)/120.0, r.Mean(), 1e-9)
}

func TestARecordingReportsProblems(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"no header":             {"2026-03-02 09:00:00,600\n2026-03-02 09:01:00,1\n", "line 1"},
		"a third column":        {"timestamp,value,host\n2026-03-02 09:00:00,600,a\n", "line 1"},
		"a rate for a count":    {"timestamp,rate\n2026-03-02 09:00:00,600\n", "line 1"},
		"an invalid count":      {"timestamp,value\n2026-03-02 09:00:00,many\n", `line 2: messages "many"`},
		"an invalid time":       {"timestamp,value\n02/03/2026,1\n", `line 2: time "02/03/2026"`},
		"a time twice":          {"period,count\n2026-03-02 09:00:00,1\n2026-03-02 09:00:00,1\n", "line 3"},
		"centuries":             {"period,count\n1026-03-02 09:00:00,1\n2026-03-02 09:00:00,1\n", "line 3"},
		"a truncated gzip file": {"\x1f\x8b\x08", "decompressing"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tt.text))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// days of rows of 10 minutes: all have a rise at 08:00, that of the third is the largest, and the second is between the
// others. Rows that missing reports are left out.
func days(count int, missing func(minute int) bool) string {
	var text strings.Builder
	text.WriteString("timestamp,value\n")
	start := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for minute := 0; minute < count*24*60; minute += 10 {
		day, hour := minute/(24*60), minute/60%24
		value := 600
		if hour >= 8 && hour < 18 {
			value += []int{300, 600, 1200}[day%3]
		}
		if !missing(minute) {
			at := start.Add(time.Duration(minute) * time.Minute)
			fmt.Fprintf(&text, "%s,%d\n", at.Format(time.DateTime), value)
		}
	}
	return text.String()
}

func whole(int) bool { return false }

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func TestEpisodesAreAroundRises(t *testing.T) {
	episodes, err := recording(t, days(3, whole)).Episodes(random(1))
	require.NoError(t, err)
	require.Len(t, episodes, 3)
	for i, want := range []struct {
		name      string
		low, high float64
	}{{LargestRise, 1, 3}, {TypicalDay, 1, 2}, {RandomDay, 1, 1.5}} {
		e := episodes[i]
		require.Equal(t, want.name, e.Name)
		require.Equal(t, 6*3600, e.Seconds)
		require.InDelta(t, want.low, e.Rate(3*3600-1), 1e-9, "before 08:00")
		require.InDelta(t, want.high, e.Rate(3*3600+1), 1e-9)
		require.InDelta(t, want.high, e.Peak(), 1e-9)
	}
}

func TestTheRandomDayFollowsTheSeed(t *testing.T) {
	r := recording(t, days(30, whole))
	drawn := func(seed uint64) Episode {
		episodes, err := r.Episodes(random(seed))
		require.NoError(t, err)
		return episodes[2]
	}
	first := drawn(1)
	require.Equal(t, first, drawn(1))
	different := map[float64]bool{}
	for seed := range uint64(20) {
		different[drawn(seed).from] = true
	}
	require.Greater(t, len(different), 5)
}

func TestNoEpisodeHasAGap(t *testing.T) {
	const fromDay3 = 2 * 24 * 60
	tests := map[string]struct {
		missing func(minute int) bool
		want    []string
		// begin of the largest rise's episode in minutes of the third day.
		begin int
	}{
		"a gap before the rise": {
			func(minute int) bool { return minute == fromDay3+6*60 },
			[]string{LargestRise, TypicalDay, RandomDay},
			6*60 + 10,
		},
		"a gap after it": {
			func(minute int) bool { return minute == fromDay3+9*60 }, []string{LargestRise, TypicalDay, RandomDay}, 3 * 60,
		},
		"the rise itself is missing": {
			func(minute int) bool { return minute >= fromDay3+7*60 && minute < fromDay3+9*60 },
			[]string{LargestRise, TypicalDay, RandomDay},
			-1,
		},
		"of each day more than an hour": {
			func(minute int) bool { return minute%(24*60) < 90 }, []string{LargestRise}, 5 * 60,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := recording(t, days(5, tt.missing))
			episodes, err := r.Episodes(random(1))
			require.NoError(t, err)
			var names []string
			for _, e := range episodes {
				names = append(names, e.Name)
				require.GreaterOrEqual(t, e.from, 0.0)
				require.LessOrEqual(t, e.from+float64(e.Seconds), e.load.length())
			}
			require.Equal(t, tt.want, names)
			if tt.begin >= 0 {
				first := episodes[0]
				begin := -1.0
				for _, p := range r.parts {
					if &p.at[0] == &first.load.at[0] {
						begin = r.midnight + p.begin + first.from
					}
				}
				require.InDelta(t, 60*(fromDay3+tt.begin), begin, 1)
			}
		})
	}
	_, err := recording(t, days(3, func(minute int) bool { return minute%300 == 0 })).Episodes(random(1))
	require.ErrorContains(t, err, "no 6 hours are without a gap")
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"timestamp,value\n2026-03-02 09:00:00,600\n2026-03-02 09:01:00,1\n2026-03-02 11:01:00,1\n",
		"period,count\n1700000000,1\n1700090000,\n1700100000,2\n", "time,rate\n0,10\n60,NaN\n90000,1\n", days(2, whole),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		require.NotEmpty(t, r.parts)
		episodes, err := r.Episodes(random(1))
		require.Equal(t, err != nil, len(episodes) == 0)
		for _, e := range episodes {
			require.GreaterOrEqual(t, e.Peak(), e.Rate(float64(e.Seconds)/2)*(1-1e-9))
		}
	})
}
