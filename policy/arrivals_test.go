// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// fed is the learned state after rates, one every ten seconds; a negative one is unknown.
func fed(rates ...float64) policy.Arrivals {
	state := policy.State{}
	for i, rate := range rates {
		in := input(1, reading(0, rate))
		in.Now = noon().Add(time.Duration(i) * 10 * time.Second)
		in.Reading.At = in.Now
		if rate < 0 {
			in.Reading.PublishRate = backlog.Unknown(backlog.ErrNoRate)
		}
		_, state = policy.Decide(in, state)
	}
	return *state.Arrivals
}

// steadily is a rate repeated n times, followed by others.
func steadily(rate float64, times int, then ...float64) []float64 {
	var all []float64
	for range times {
		all = append(all, rate)
	}
	return append(all, then...)
}

func TestArrivalsAreLearned(t *testing.T) {
	tests := map[string]struct {
		rates []float64
		check func(*testing.T, policy.Arrivals)
	}{
		"begins with the first rate": {[]float64{100}, func(t *testing.T, a policy.Arrivals) {
			require.Equal(t, []float64{100, 100, 100}, []float64{a.Fast, a.Slow, a.Peak})
		}},
		"forgets a wrong rate at the second right one": {
			steadily(300, 90, 1e6, 1e6, 300, 300), func(t *testing.T, a policy.Arrivals) {
				require.Equal(t, []float64{300, 300}, []float64{a.Fast, a.Slow})
				require.LessOrEqual(t, a.Deviation, 300.0)
			},
		},
		"forgets a wrong rate that lasted long": {
			steadily(1e6, 30, 300, 300), func(t *testing.T, a policy.Arrivals) {
				require.Equal(t, []float64{300, 300}, []float64{a.Fast, a.Slow})
			},
		},
		"accepts a step up at once": {steadily(100, 20, 300), func(t *testing.T, a policy.Arrivals) {
			require.InDelta(t, 300, a.Fast, 1e-9)
			require.True(t, a.Rose)
			require.Less(t, a.Slow, 150.0)
		}},
		"does not take one message after a minute of none for a step": {
			append(steadily(0.1, 1), append(steadily(0, 6), 0.1)...),
			func(t *testing.T, a policy.Arrivals) {
				require.False(t, a.Rose)
				require.Less(t, a.Fast, 0.05)
			},
		},
		"takes five messages after a minute of none for a step": {
			append(steadily(0.1, 1), append(steadily(0, 6), 0.5)...),
			func(t *testing.T, a policy.Arrivals) {
				require.True(t, a.Rose)
				require.InDelta(t, 0.5, a.Fast, 1e-9)
			},
		},
		"knows all of a step up at the second rate": {steadily(100, 20, 300, 300), func(t *testing.T, a policy.Arrivals) {
			require.InDelta(t, 300, a.Slow, 1e-9)
			require.False(t, a.Rose)
		}},
		"ignores one rate that is far below": {steadily(100, 20, 0), func(t *testing.T, a policy.Arrivals) {
			require.Greater(t, a.Fast, 50.0)
			require.Greater(t, a.Slow, 85.0)
			require.NotZero(t, a.FellAt)
		}},
		"accepts a step down at the second rate": {steadily(100, 20, 10, 10), func(t *testing.T, a policy.Arrivals) {
			require.Equal(t, []float64{10, 10}, []float64{a.Fast, a.Slow})
		}},
		"forgets a fall that was none": {steadily(100, 20, 0, 100), func(t *testing.T, a policy.Arrivals) {
			require.Zero(t, a.FellAt)
			require.Greater(t, a.Fast, 70.0)
		}},
		"is not moved by a rate that is unknown": {steadily(100, 20, -1, -1), func(t *testing.T, a policy.Arrivals) {
			require.InDelta(t, 100, a.Fast, 1e-9)
		}},
		"follows a small change slowly": {steadily(100, 20, 110), func(t *testing.T, a policy.Arrivals) {
			require.InDelta(t, 103.9, a.Fast, 0.1) // 1 - exp(-10/20)
			require.InDelta(t, 101.05, a.Slow, 0.1)
		}},
		"remembers a peak for an hour, ever less": {
			append(steadily(100, 20, 300, 300), steadily(100, 360)...),
			func(t *testing.T, a policy.Arrivals) {
				require.InDelta(t, 100+200/2.718, a.Peak, 5)
			},
		},
		"expects a rise like the last one": {
			append(steadily(100, 20), steadily(200, 20)...),
			func(t *testing.T, a policy.Arrivals) {
				require.Greater(t, a.Rise, 0.4)
			},
		},
		"expects no peak of a flood of ten seconds": {
			append(steadily(100, 20, 1000), steadily(100, 20)...), func(t *testing.T, a policy.Arrivals) {
				require.Less(t, a.Rise, 3.0)
			},
		},
		"forgets a rise in two hours": {
			append(append(steadily(100, 20), steadily(200, 20)...), steadily(200, 720)...),
			func(t *testing.T, a policy.Arrivals) {
				require.InDelta(t, 0.05, a.Rise, 0.02)
			},
		},
		"expects at most seven times the load": {
			append(steadily(1, 20), steadily(10_000, 20)...),
			func(t *testing.T, a policy.Arrivals) {
				require.LessOrEqual(t, a.Rise, 6.0)
			},
		},
		"keeps the rates of a reaction time": {steadily(100, 300), func(t *testing.T, a policy.Arrivals) {
			require.Len(t, a.Past, 6, "50 s, every 10 s")
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.check(t, fed(test.rates...)) })
	}
}

// stepping is the state learned at 100/s from readings with a rate over the window and one over the newest 2 s.
func stepping(readings ...[2]float64) policy.Arrivals {
	state := policy.State{Arrivals: &policy.Arrivals{At: noon(), Fast: 100, Slow: 100, Peak: 100}}
	for i, rates := range readings {
		in := input(1, reading(0, rates[0]))
		in.Now = noon().Add(time.Duration(i+1) * 2 * time.Second)
		in.Reading.At = in.Now
		in.Reading.LatestPublishRate, in.Reading.LatestWindow = backlog.Known(rates[1]), 2*time.Second
		_, state = policy.Decide(in, state)
	}
	return *state.Arrivals
}

func TestArrivalsWhileTheWindowFills(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		readings [][2]float64
		want     float64
	}{
		"reads a step from the newest answers":           {[][2]float64{{120, 300}}, 300},
		"reads the rest of a step from the next reading": {[][2]float64{{120, 200}, {165, 225}}, 225},
		"follows the window when both agree":             {[][2]float64{{100, 125}}, 100},
		"does not fall with the newest answers":          {[][2]float64{{100, 10}}, 100},
		"ignores the noise of a few seconds":             {[][2]float64{{100, 121}}, 100},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.InDelta(t, test.want, stepping(test.readings...).Fast, 1e-9)
		})
	}
}

// planned is the rate that a decision plans for.
func planned(t *testing.T, in policy.Input, state policy.State) float64 {
	t.Helper()
	in.Reading.At = noon().Add(-time.Second)
	state.ReadAt = noon() // so that nothing more is learned
	decision, _ := policy.Decide(in, state)
	for _, term := range decision.Terms {
		if term.Name == "planned" {
			return term.Value
		}
	}
	require.Fail(t, "nothing is planned for", "%+v", decision)
	return 0
}

func TestThePlannedRate(t *testing.T) {
	tests := map[string]struct {
		arrivals policy.Arrivals
		without  policy.Part
		want     float64
	}{
		"is the present one while it is steady": {arrivals: policy.Arrivals{Fast: 100, Slow: 100, Peak: 100}, want: 100},
		"is where a trend leads in a reaction time": {
			arrivals: policy.Arrivals{Fast: 100, Slow: 93, Peak: 200}, want: 100 + 7.0/70*50,
		},
		"is a tenth above the highest seen at most": {arrivals: policy.Arrivals{Fast: 100, Slow: 50, Peak: 100}, want: 110},
		"follows no trend that may be noise": {
			arrivals: policy.Arrivals{Fast: 100, Slow: 93, Peak: 200, Deviation: 5},
			want:     100,
		},
		"follows no trend without that part": {
			arrivals: policy.Arrivals{Fast: 100, Slow: 93, Peak: 200},
			without:  policy.PartTrend, want: 100,
		},
		"stays at the slow one while the fast dips": {arrivals: policy.Arrivals{Fast: 60, Slow: 100, Peak: 100}, want: 100},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := input(1, reading(0, test.arrivals.Fast))
			in.Without = test.without
			require.InDelta(t, test.want, planned(t, in, policy.State{Arrivals: &test.arrivals, Capacity: learned(100)}), 1e-9)
		})
	}
}
