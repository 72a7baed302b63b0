// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTallyCountsAMessageOnce(t *testing.T) {
	tally := NewTally(time.Second)
	tally.Record(2, 500*time.Millisecond)
	tally.Record(1, time.Second)
	tally.Record(200, 3*time.Second)
	tally.Record(2, 5*time.Second)
	tally.Record(maxMessages+1, 5*time.Second)
	require.Equal(t, Counts{Done: 3, Late: 1, Duplicates: new(int64(1))}, tally.Counts())
	require.EqualValues(t, 3, tally.Recent().Count)
	require.Equal(t, Latencies{}, tally.Recent(), "nothing since")
	require.EqualValues(t, 3, tally.Latencies().Count)
}

func TestLatenciesAreExactToAThousandth(t *testing.T) {
	tally := NewTally(time.Second)
	for i := range 1000 {
		tally.Record(uint64(i+1), time.Duration(i+1)*time.Millisecond)
	}
	got := tally.Latencies()
	for _, one := range []struct{ got, want time.Duration }{
		{got.P50, 500 * time.Millisecond},
		{got.P90, 900 * time.Millisecond},
		{got.P99, 990 * time.Millisecond},
		{got.P999, 999 * time.Millisecond},
		{got.Max, time.Second},
		{got.Mean, 500500 * time.Microsecond},
	} {
		require.InEpsilon(t, one.want, one.got, 0.001)
	}
	tally.Record(2000, -time.Second)
	tally.Record(2001, 1e6*time.Hour)
	require.EqualValues(t, 1002, tally.Latencies().Count, "what no clock can say counts at the bounds")
}

func TestSkewIsSeenAgainstDueAndReceived(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for name, test := range map[string]struct {
		published time.Duration // after now; due is now, received 100 ms later
		want      time.Duration
	}{
		"a clock that may be right": {50 * time.Millisecond, 0},
		"rounded milliseconds":      {-time.Millisecond, 0},
		"a clock that is being set": {-9 * time.Millisecond, 0},
		"a clock ahead":             {400 * time.Millisecond, 300 * time.Millisecond},
		"a clock behind":            {-time.Second, -time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			m := Meter{Tally: NewTally(time.Second)}
			m.see(now, now.Add(test.published), now.Add(100*time.Millisecond))
			m.see(now, now.Add(50*time.Millisecond), now.Add(100*time.Millisecond))
			require.Equal(t, test.want, m.Skew())
		})
	}
}
