// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package forecast_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/forecast"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// poll is the window of a rate in seconds.
const poll = 10

// at is a time in seconds after noon.
func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// pulse is a load from one second on.
type pulse struct{ begin, length, rate float64 }

// train is a pulse of 40 s with 200 messages/s each period, in seconds.
func train(count int, period float64) []pulse {
	all := make([]pulse, count)
	for i := range all {
		all[i] = pulse{begin: 63 + float64(i)*period, length: 40, rate: 200}
	}
	return all
}

// learned is what polls until a second show of the pulses, above a base of 10 messages/s.
func learned(pulses []pulse, until float64) forecast.Pulses {
	return polled(forecast.Pulses{}, pulses, 0, until)
}

// polled is what polls between two seconds add.
func polled(p forecast.Pulses, pulses []pulse, since, until float64) forecast.Pulses {
	for second := since + poll; second <= until; second += poll {
		messages := 10.0 * poll
		for _, one := range pulses {
			overlap := min(second, one.begin+one.length) - max(second-poll, one.begin)
			messages += (one.rate - 10) * max(0, overlap)
		}
		p = p.Learn(forecast.Rate{PerSecond: messages / poll, Window: poll * time.Second, At: at(second)}, 1)
	}
	return p
}

func TestAPulseIsExpectedAfterThree(t *testing.T) {
	for name, period := range map[string]float64{
		"each two minutes": 120, "each five minutes": 300, "each hour": 3600, "each day": 24 * 3600,
	} {
		t.Run(name, func(t *testing.T) {
			pulses := train(3, period)
			now := 63 + 2*period
			_, expected := learned(pulses[:2], now-20).Next(at(now - 20))
			require.False(t, expected, "two have one interval")

			next, expected := learned(pulses, now+60).Next(at(now + 60))
			require.True(t, expected)
			require.WithinDuration(t, at(now+period), next.Begin, time.Second)
			require.Equal(t, 5*time.Second, next.Spread)
			require.InEpsilon(t, 200, next.PerSecond, 0.05)
			require.Equal(t, 2, next.Regular)
		})
	}
}

func TestTheRecordTellsHowManyCameInTime(t *testing.T) {
	pulses := train(8, 300)
	pulses[7].begin += 120
	next, expected := learned(pulses[:7], 2100).Next(at(2100))
	require.True(t, expected)
	require.EqualValues(t, 4, next.Foreseen, "the first three are needed to expect one")
	require.EqualValues(t, 4, next.Of)

	next, expected = learned(pulses, 2460).Next(at(2460))
	require.False(t, expected, "one at another time ends it")
	require.EqualValues(t, 4, next.Foreseen)
	require.EqualValues(t, 5, next.Of)
}

func TestAPulseThatDoesNotComeIsExpectedForAPeriod(t *testing.T) {
	p := learned(train(6, 300), 63+5*300+60)
	for after, want := range map[float64]bool{299: true, 330: true, 590: true, 610: false} {
		_, expected := p.Next(at(63 + 5*300 + after))
		require.Equal(t, want, expected, "%v seconds after the last one", after)
	}
}

func TestPulsesAtRandomTimesAreHardlyEverExpected(t *testing.T) {
	random, expected := rand.New(rand.NewPCG(1, 2)), 0
	const runs = 500
	for range runs {
		pulses := train(10, 0)
		for i := 1; i < len(pulses); i++ {
			pulses[i].begin = pulses[i-1].begin + 100 + 300*random.ExpFloat64()
		}
		end := pulses[9].begin + 60
		if _, one := learned(pulses, end).Next(at(end)); one {
			expected++
		}
	}
	require.Less(t, expected, runs/50)
}

func TestAFewMessagesBetweenPulsesAreNoise(t *testing.T) {
	tests := map[string]struct {
		rate    float64
		regular bool
	}{
		"a fiftieth of a pulse":                  {18, true},
		"a tenth of one, which may be a new job": {50, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pulses := append(train(6, 300), pulse{begin: 63 + 5*300 + 137, length: 20, rate: test.rate})
			now := 63.0 + 5*300 + 200
			next, regular := learned(pulses, now).Next(at(now))
			require.Equal(t, test.regular, regular)
			if regular {
				require.WithinDuration(t, at(63+6*300), next.Begin, time.Second)
				require.Equal(t, 5, next.Regular)
			}
		})
	}
}

func TestMoreThanAPulseAMinuteIsNoise(t *testing.T) {
	for _, period := range []float64{30, 50} {
		pulses := train(60, period)
		for i := range pulses {
			pulses[i].length = 8
		}
		end := 60 * period
		_, expected := learned(pulses, end).Next(at(end))
		require.False(t, expected, "each %v seconds", period)
	}
}

func TestALoadThatStaysIsNoPulse(t *testing.T) {
	pulses := append(train(4, 300), pulse{begin: 1500, length: 1e6, rate: 200})
	p := learned(pulses, 1500+4*3600-60)
	require.True(t, p.Running())
	p = learned(pulses, 1500+4*3600+60)
	require.False(t, p.Running())
	require.InDelta(t, 200, p.Base, 1)
	require.Len(t, p.Past, 4)
}

func TestTwoDifferentPulsesInAPeriodAreTold(t *testing.T) {
	pulses := train(8, 0)
	for i := range pulses {
		pulses[i].begin = 63 + 300*float64(i) + 60*float64(i%2)
		if i%2 == 1 {
			pulses[i].rate = 80
		}
	}
	next, expected := learned(pulses[:7], 63+6*300+60).Next(at(63 + 6*300 + 60))
	require.True(t, expected)
	require.WithinDuration(t, at(63+7*300+60), next.Begin, time.Second)
	require.InEpsilon(t, 80, next.PerSecond, 0.05)

	next, expected = learned(pulses, 63+8*300-30).Next(at(63 + 8*300 - 30))
	require.True(t, expected)
	require.WithinDuration(t, at(63+8*300), next.Begin, time.Second)
	require.InEpsilon(t, 200, next.PerSecond, 0.05)
}

func TestJitterIsTheSpread(t *testing.T) {
	pulses := train(8, 300)
	for i := range pulses {
		pulses[i].begin += float64(i%3) * 8
	}
	next, expected := learned(pulses, 63+7*300+80).Next(at(63 + 7*300 + 80))
	require.True(t, expected)
	require.Greater(t, next.Spread, 8*time.Second)
	require.WithinDuration(t, at(63+8*300+8), next.Begin, 8*time.Second)
}

func TestAPollThatMissesMessagesEndsNoPulse(t *testing.T) {
	pulses := train(6, 300)
	for i := range 6 {
		pulses[i].length = 15
		pulses = append(pulses, pulse{begin: pulses[i].begin + 25, length: 15, rate: 200})
	}
	p := learned(pulses, 63+5*300+60)
	require.Len(t, p.Past, 6)
	_, expected := p.Next(at(63 + 5*300 + 60))
	require.True(t, expected)
}

func TestAPulseWhoseEndWasNotSeenIsForgotten(t *testing.T) {
	p := learned(train(4, 300), 63+3*300+20)
	require.True(t, p.Running())
	p = p.Learn(forecast.Rate{PerSecond: 10, Window: 5 * time.Minute, At: at(63 + 3*300 + 320)}, 1)
	require.False(t, p.Running())
	require.Len(t, p.Past, 3)
}

func TestAPulseThatOutlastsAGapIsTheSame(t *testing.T) {
	const began = 63 + 5*3600
	pulses := train(8, 3600)
	for i := range pulses {
		pulses[i].length = 600
	}
	for name, test := range map[string]struct {
		gap, rate float64
		pulses    int
	}{
		"a restart":          {200, 200, 6},
		"it ended meanwhile": {600, 10, 5},
		"the next one runs":  {3600, 200, 5},
	} {
		t.Run(name, func(t *testing.T) {
			p, now := learned(pulses, began+100), began+100+test.gap
			window := time.Duration(test.gap * float64(time.Second))
			p = p.Learn(forecast.Rate{PerSecond: test.rate, Window: window, At: at(now)}, 1)
			require.Len(t, p.Past, test.pulses)
			require.Equal(t, test.pulses == 6, p.Running())
			if !p.Running() {
				return
			}
			p = polled(p, pulses, now, began+700)
			require.WithinDuration(t, at(began), p.Past[5].Begin, time.Second)
			require.InDelta(t, 600, p.Past[5].Seconds, 1)
			require.InEpsilon(t, 600*190, p.Past[5].Messages, 0.01)
			_, expected := p.Next(at(began + 700))
			require.True(t, expected)
		})
	}
}

func TestALongRecordReplacesHeadroom(t *testing.T) {
	for count, want := range map[int]float64{4: 0, 6: 0, 8: 0.33, 10: 0.67, 30: 0.67} {
		until := 63 + float64(count-1)*300 + 60
		next, expected := learned(train(count, 300), until).Next(at(until))
		require.True(t, expected)
		require.InDelta(t, want, next.Weight(), 0.01, "after %d", count)
	}
}

func TestALargePulseOfOnceDoesNotEndTheForecast(t *testing.T) {
	pulses := append(train(10, 300), pulse{begin: 63 + 10*300, length: 3600, rate: 500})
	for i := range 20 {
		pulses = append(pulses, pulse{begin: 63 + 23*300 + float64(i)*300, length: 40, rate: 200})
	}
	for count := 6; count <= 20; count++ { // each of them, as long as the large one is among those that are remembered
		now := 63 + float64(22+count)*300 + 60
		next, expected := learned(pulses, now).Next(at(now))
		require.True(t, expected, "after %d", count)
		require.WithinDuration(t, at(now-60+300), next.Begin, time.Second)
	}
}

func TestNoiseBetweenTheFirstPulsesDoesNotHideThem(t *testing.T) {
	for name, each := range map[string]int{"after each": 1, "after each third": 3} {
		t.Run(name, func(t *testing.T) {
			pulses := train(12, 300)
			for i := 0; i < 12; i += each {
				pulses = append(pulses, pulse{begin: pulses[i].begin + 97 + 10*float64(i%5), length: 20, rate: 18})
			}
			for count := 4; count < 12; count++ {
				now := 63 + float64(count-1)*300 + 200
				next, expected := learned(pulses, now).Next(at(now))
				require.True(t, expected, "after %d", count)
				require.WithinDuration(t, at(63+float64(count)*300), next.Begin, time.Second)
			}
		})
	}
}

func TestSmallPulsesAreExpectedOnceLargeOnesEnded(t *testing.T) {
	pulses := train(30, 300)
	for i := range 15 {
		pulses[i].rate = 10_000
	}
	now := 63.0 + 29*300 + 60
	next, expected := learned(pulses, now).Next(at(now))
	require.True(t, expected)
	require.InEpsilon(t, 200, next.PerSecond, 0.05)
}

func TestADayWithLargeJitterIsNotExpected(t *testing.T) {
	for name, test := range map[string]struct {
		minutes  []float64
		expected bool
	}{
		"a minute":       {[]float64{0, 1, 0, 1}, true},
		"up to 90 of it": {[]float64{0, 90, 30, 60}, false},
	} {
		t.Run(name, func(t *testing.T) {
			pulses := train(4, 24*3600)
			for i := range pulses {
				pulses[i].begin += 60 * test.minutes[i]
			}
			now := pulses[3].begin + 60
			_, expected := learned(pulses, now).Next(at(now))
			require.Equal(t, test.expected, expected)
		})
	}
}
