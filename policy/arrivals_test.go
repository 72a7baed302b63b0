// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math"
	"math/rand/v2"
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
			require.Equal(t, []float64{100, 100}, []float64{a.Rate, a.Peak})
		}},
		"forgets a wrong rate at the second right one": {
			steadily(300, 90, 1e6, 1e6, 300, 300), func(t *testing.T, a policy.Arrivals) {
				require.InDelta(t, 300, a.Rate, 1e-9)
				require.LessOrEqual(t, a.Dispersion, 2.0)
			},
		},
		"forgets a wrong rate that lasted long": {
			steadily(1e6, 30, 300, 300), func(t *testing.T, a policy.Arrivals) {
				require.InDelta(t, 300, a.Rate, 1e-9)
			},
		},
		"accepts a step up at once": {steadily(100, 20, 300), func(t *testing.T, a policy.Arrivals) {
			require.InDelta(t, 300, a.Rate, 1e-9)
			require.NotZero(t, a.RoseAt)
		}},
		"does not take one message after a minute of none for a step": {
			append(steadily(0.1, 1), append(steadily(0, 6), 0.1)...),
			func(t *testing.T, a policy.Arrivals) {
				require.Zero(t, a.RoseAt)
				require.Less(t, a.Rate, 0.05)
			},
		},
		"takes five messages after a minute of none for a step": {
			append(steadily(0.1, 1), append(steadily(0, 6), 0.5)...),
			func(t *testing.T, a policy.Arrivals) {
				require.NotZero(t, a.RoseAt)
				require.InDelta(t, 0.5, a.Rate, 1e-9)
			},
		},
		"knows all of a step up at the second rate": {steadily(100, 20, 300, 300), func(t *testing.T, a policy.Arrivals) {
			require.InDelta(t, 300, a.Rate, 1e-9)
			require.Zero(t, a.RoseAt)
		}},
		"ignores one rate that is far below": {steadily(100, 20, 0), func(t *testing.T, a policy.Arrivals) {
			require.Greater(t, a.Rate, 50.0)
			require.NotZero(t, a.FellAt)
		}},
		"accepts a step down at the second rate": {steadily(100, 20, 10, 10), func(t *testing.T, a policy.Arrivals) {
			require.InDelta(t, 10, a.Rate, 1e-9)
		}},
		"forgets a fall that was none": {steadily(100, 20, 0, 100), func(t *testing.T, a policy.Arrivals) {
			require.Zero(t, a.FellAt)
			require.Greater(t, a.Rate, 70.0)
		}},
		"is not moved by a rate that is unknown": {steadily(100, 20, -1, -1), func(t *testing.T, a policy.Arrivals) {
			require.InDelta(t, 100, a.Rate, 1e-9)
		}},
		"follows a small change slowly": {steadily(100, 20, 110), func(t *testing.T, a policy.Arrivals) {
			require.Greater(t, a.Rate, 102.0)
			require.Less(t, a.Rate, 105.0)
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
				require.Less(t, a.Rise, 0.1)
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
	state := policy.State{Arrivals: &policy.Arrivals{At: noon(), Rate: 100, Peak: 100}}
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
			require.InDelta(t, test.want, stepping(test.readings...).Rate, 1e-9)
		})
	}
}

// noisy are so many rates of a load of 100/s of independent batches.
func noisy(batch float64, times int) []float64 {
	random := rand.New(rand.NewPCG(31, 32))
	rates := make([]float64, times)
	for i := range rates {
		mean := 1000 / batch // batches in 10 s
		rates[i] = batch * math.Round(mean+math.Sqrt(mean)*random.NormFloat64()) / 10
	}
	return rates
}

// Of independent batches the variance of a count of messages is its mean times the size of a batch.
func TestTheNoiseOfALoadIsLearned(t *testing.T) {
	for _, batch := range []float64{1, 10, 50} {
		learned, rates := 0.0, noisy(batch, 400)
		for polls := 200; polls < 400; polls += 10 { // the mean of many, since the last rates count most
			learned += fed(rates[:polls]...).Dispersion / 20
		}
		require.InEpsilon(t, batch, learned, 0.4, "batches of %g", batch)
	}
}

func TestALoudLoadNeedsALargerStep(t *testing.T) {
	tests := map[float64]struct{ quiet, loud bool }{110: {}, 150: {quiet: true}, 300: {quiet: true, loud: true}}
	for rate, tt := range tests {
		stepped := !fed(append(noisy(1, 100), rate)...).RoseAt.IsZero()
		require.Equal(t, tt.quiet, stepped, "%g/s after messages one by one", rate)
		require.Equal(t, tt.loud, !fed(append(noisy(50, 100), rate)...).RoseAt.IsZero(), "%g/s after batches of 50", rate)
	}
}

func TestAStepIsHardlyNoise(t *testing.T) {
	for _, then := range []float64{200, 1000, 100_000, 1} {
		before, stepped := fed(noisy(1, 100)...), fed(append(noisy(1, 100), then)...)
		require.LessOrEqual(t, stepped.Dispersion, before.Dispersion+0.5*max(1, before.Dispersion), "%g/s", then)
		settled := fed(append(noisy(1, 100), steadily(then, 10)...)...)
		require.LessOrEqual(t, settled.Dispersion, 1.0, "%g/s", then)
	}
}
