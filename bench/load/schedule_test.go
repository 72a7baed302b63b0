// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"math"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// recordings are the files next to the scenarios of these tests.
func recordings() fstest.MapFS {
	return fstest.MapFS{
		"day.csv": {Data: []byte("time,rate\n0,0\n10,100\n20,100\n40,0\n")},
		"bad.csv": {Data: []byte("time,rate\n0,much\n")},
	}
}

// decode decodes a shape of a scenario.
func decode(t *testing.T, text string) Shape {
	t.Helper()
	var shape Shape
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &shape))
	return shape
}

func TestScheduleMakesTheIntegralOfItsShape(t *testing.T) {
	for name, test := range map[string]struct {
		shape    string
		messages float64
		rates    map[time.Duration]float64
	}{
		"a constant rate": {
			"{duration: 60s, constant: {rate: 100}}", 6000,
			map[time.Duration]float64{0: 100, 59 * time.Second: 100, time.Minute: 0, -1: 0},
		},
		"less than a message a second": {"{duration: 60s, constant: {rate: 0.1}}", 6, nil},
		"no message":                   {"{duration: 60s, constant: {rate: 0}}", 0, nil},
		"a step": {
			"{duration: 60s, step: {from: 50, to: 500, at: 30s}}", 16_500,
			map[time.Duration]float64{30*time.Second - 1: 50, 30 * time.Second: 500, 59 * time.Second: 500},
		},
		"a step and back": {
			"{duration: 60s, step: {from: 10, to: 100, at: 20s, until: 40s}}", 2400,
			map[time.Duration]float64{20 * time.Second: 100, 40 * time.Second: 10},
		},
		"a ramp": {
			"{duration: 60s, ramp: {from: 0, to: 600}}", 18_000,
			map[time.Duration]float64{30 * time.Second: 300},
		},
		"a ramp with a level before and after": {
			"{duration: 60s, ramp: {from: 100, to: 20, begin: 20s, end: 40s}}", 2000 + 1200 + 400,
			map[time.Duration]float64{30 * time.Second: 60, 50 * time.Second: 20},
		},
		"a wave": {
			"{duration: 60s, wave: {low: 10, high: 90, period: 20s}}", 3000,
			map[time.Duration]float64{0: 10, 10 * time.Second: 90, 20 * time.Second: 10, 25 * time.Second: 50},
		},
		"a wave that is cut": {"{duration: 10s, wave: {low: 10, high: 90, period: 20s}}", 500, nil},
		"a burst": {
			"{duration: 60s, burst: {rate: 5, messages: 1000, at: 30s}}", 1300,
			map[time.Duration]float64{30 * time.Second: 1005, 31 * time.Second: 5},
		},
		"bursts": {
			"{duration: 60s, burst: {messages: 100, within: 500ms, every: 20s}}", 300,
			map[time.Duration]float64{0: 200, 500 * time.Millisecond: 0, 20 * time.Second: 200},
		},
		"a burst that the end cuts": {"{duration: 21s, burst: {messages: 100, within: 2s, every: 20s}}", 150, nil},
		"a recording": {
			"{replay: {file: day.csv}}", 500 + 1000 + 1000,
			map[time.Duration]float64{5 * time.Second: 50, 15 * time.Second: 100, 30 * time.Second: 50},
		},
		"a part of a recording, scaled": {
			"{duration: 10s, replay: {file: day.csv, offset: 5s, scale: 2}}", 2 * (375 + 500),
			map[time.Duration]float64{0: 100, 5 * time.Second: 200},
		},
	} {
		t.Run(name, func(t *testing.T) {
			schedule, err := decode(t, test.shape).Schedule(recordings())
			require.NoError(t, err)
			require.InDelta(t, test.messages, schedule.Messages(schedule.End()), 1e-6*test.messages)
			require.Len(t, slices.Collect(schedule.Due()), int(test.messages))
			for at, rate := range test.rates {
				require.InDelta(t, rate, schedule.Rate(at), 1e-6, "at %s", at)
			}
		})
	}
}

func TestScheduleRejectsImplausibleShapes(t *testing.T) {
	for name, test := range map[string]struct{ shape, want string }{
		"no form":               {"{duration: 1m}", "load has 0 forms: set exactly one of"},
		"two forms":             {"{duration: 1m, constant: {rate: 1}, ramp: {from: 1, to: 2}}", "load has 2 forms"},
		"no duration":           {"{constant: {rate: 1}}", "load.duration is 0s"},
		"a duration below zero": {"{duration: -1s, constant: {rate: 1}}", "load.duration is -1s"},
		"a month":               {"{duration: 720h, constant: {rate: 1}}", "load.duration is 720h0m0s"},
		"a rate below zero":     {"{duration: 1m, constant: {rate: -1}}", "load.constant.rate is -1"},
		"a rate without bounds": {"{duration: 1m, constant: {rate: 1e9}}", "load.constant.rate is 1e+09"},
		"too many messages":     {"{duration: 168h, constant: {rate: 1e6}}", "load is 6.05e+11 messages"},
		"a step after the end":  {"{duration: 1m, step: {from: 1, to: 2, at: 2m}}", "load.step.at is 2m0s"},
		"a step back too early": {"{duration: 1m, step: {from: 1, to: 2, at: 9s, until: 8s}}", "load.step.until is 8s"},
		"a ramp that goes back": {"{duration: 1m, ramp: {from: 1, to: 2, begin: 9s, end: 8s}}", "load.ramp is from 9s"},
		"a wave without period": {"{duration: 1m, wave: {low: 1, high: 2}}", "load.wave.period is 0s"},
		"a wave of noise":       {"{duration: 1m, wave: {low: 1, high: 2, period: 1ms}}", "load.wave.period is 1ms"},
		"a wave upside down":    {"{duration: 1m, wave: {low: 2, high: 1, period: 9s}}", "load.wave.high is 1"},
		"a burst after the end": {"{duration: 1m, burst: {messages: 1, at: 2m}}", "load.burst is 1s long"},
		"bursts that overlap":   {"{duration: 1m, burst: {messages: 1, every: 1ms}}", "load.burst.every is 1ms"},
		"a burst of too much":   {"{duration: 1m, burst: {messages: 1e8}}", "load.the rate of the burst is 1e+08"},
		"no recording":          {"{replay: {file: night.csv}}", "load.replay.file: open night.csv"},
		"a recording elsewhere": {"{replay: {file: ../day.csv}}", "load.replay.file: open ../day.csv"},
		"a recording of words":  {"{replay: {file: bad.csv}}", "load.replay.file bad.csv: line 2"},
		"a recording too short": {"{duration: 1m, replay: {file: day.csv}}", "load.replay has 40s after the offset"},
		"a scale below zero":    {"{replay: {file: day.csv, scale: -1}}", "load.replay.scale is -1"},
		"an unknown arrival":    {"{duration: 1m, constant: {rate: 1}, arrivals: Odd}", `load.arrivals is "Odd"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(t, test.shape).Schedule(recordings())
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestEqualSeedsMakeEqualLoads(t *testing.T) {
	for _, process := range []ArrivalProcess{Jittered, Poisson} {
		t.Run(string(process), func(t *testing.T) {
			due := func(seed uint64) []time.Duration {
				shape := decode(t, "{duration: 60s, ramp: {from: 10, to: 100}}")
				shape.Arrivals, shape.Seed = process, seed
				schedule, err := shape.Schedule(nil)
				require.NoError(t, err)
				return slices.Collect(schedule.Due())
			}
			first, again := due(7), due(7)
			require.Equal(t, first, again)
			require.NotEqual(t, first, due(8))
		})
	}
}

func TestArrivalsAreSpacedByTheirProcess(t *testing.T) {
	for process, wantVariation := range map[ArrivalProcess]float64{ // standard deviation of distances over their mean
		Even: 0, Jittered: 1 / math.Sqrt(6), Poisson: 1,
	} {
		t.Run(string(process), func(t *testing.T) {
			shape := decode(t, "{duration: 100s, constant: {rate: 1000}, seed: 1}")
			shape.Arrivals = process
			schedule, err := shape.Schedule(nil)
			require.NoError(t, err)
			var sum, squares, before float64
			var n int
			for due := range schedule.Due() {
				distance := due.Seconds() - before
				sum, squares, before, n = sum+distance, squares+distance*distance, due.Seconds(), n+1
			}
			require.InDelta(t, 100_000, n, 4*math.Sqrt(100_000)*wantVariation+1)
			mean := sum / float64(n)
			require.InDelta(t, wantVariation, math.Sqrt(max(0, squares/float64(n)-mean*mean))/mean, 0.02)
		})
	}
}

func TestArrivalsWaitUntilTheyAreDue(t *testing.T) {
	schedule, err := decode(t, "{duration: 10s, constant: {rate: 2}}").Schedule(nil)
	require.NoError(t, err)
	arrivals := schedule.Arrivals()
	_, ok := arrivals.Next(499 * time.Millisecond)
	require.False(t, ok)
	for i := range 20 {
		due, ok := arrivals.Next(10 * time.Second)
		require.True(t, ok)
		require.Equal(t, time.Duration(i+1)*500*time.Millisecond, due)
	}
	_, ok = arrivals.Next(time.Hour)
	require.False(t, ok, "the load has ended")
}

func FuzzShape(f *testing.F) {
	for _, seed := range []string{
		"{duration: 60s, constant: {rate: 100}}",
		"{duration: 7s, step: {from: 5, to: 50.5, at: 3s}, arrivals: Jittered}",
		"{duration: 60s, ramp: {from: 0, to: 60, end: 5ms}, arrivals: Poisson, seed: 3}",
		"{duration: 20s, wave: {low: 0, high: 9, period: 7s}}",
		"{duration: 60s, burst: {rate: 0.1, messages: 1000, at: 30s, every: 3s}}",
		"{duration: 3s, replay: {file: day.csv, offset: 2s, scale: 0.3}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var shape Shape
		if yaml.UnmarshalStrict([]byte(text), &shape) != nil {
			return
		}
		schedule, err := shape.Schedule(recordings())
		if err != nil {
			return
		}
		total := schedule.Messages(schedule.End())
		if total > 20_000 {
			return
		}
		last, n := time.Duration(0), 0
		for due := range schedule.Due() {
			require.True(t, due >= last && due <= schedule.End(), "%s is after %s and within %s", due, last, schedule.End())
			if n++; shape.Arrivals == "" || shape.Arrivals == Even {
				require.InDelta(t, float64(n), schedule.Messages(due), 0.01)
			}
			last = due
		}
		if shape.Arrivals != Poisson {
			require.Equal(t, int(total+whole), n)
		}
	})
}
