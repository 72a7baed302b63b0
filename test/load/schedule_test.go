// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// poll advances the schedule to end in the steps that next gives and sends what is due.
func poll(s *schedule, end time.Duration, next func() time.Duration) {
	for now := time.Duration(0); now < end; {
		now = min(end, now+next())
		for {
			if _, ok := s.Next(now); !ok {
				break
			}
		}
	}
}

func TestScheduleSendsTheIntegralOfItsProfile(t *testing.T) {
	for name, test := range map[string]struct {
		profile Profile
		want    float64 // messages in 60 s
	}{
		"a constant rate":                   {Constant(100), 6000},
		"a rate below one per second":       {Constant(0.1), 6},
		"a rate far above the clock's step": {Constant(20_000), 1_200_000},
		"a ramp":                            {func(e time.Duration) float64 { return 10 * e.Seconds() }, 18_000},
		"a step": {func(e time.Duration) float64 {
			if e < 30*time.Second {
				return 50
			}
			return 500
		}, 16_500},
		"a sine that goes below zero, which counts as zero": {
			func(e time.Duration) float64 { return 100 * math.Sin(2*math.Pi*e.Seconds()/60) }, 100 * 60 / math.Pi,
		},
		"a rate that is not a number counts as zero": {Constant(math.NaN()), 0},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			stalls := map[string]func() time.Duration{
				"every millisecond":   func() time.Duration { return time.Millisecond },
				"with stalls of 3 s":  func() time.Duration { return time.Duration(random.Int64N(int64(3 * time.Second))) },
				"in one single stall": func() time.Duration { return time.Minute },
			}
			for when, next := range stalls {
				s := &schedule{profile: test.profile}
				poll(s, time.Minute, next)
				require.EqualValues(t, math.Floor(test.want+1e-3), s.taken, when)
			}
		})
	}
}

func TestScheduleSaysWhenAMessageIsDue(t *testing.T) {
	s := &schedule{profile: Constant(200)}
	for i := range 1000 {
		want := time.Duration(i+1) * 5 * time.Millisecond
		_, ok := s.Next(want - time.Millisecond)
		require.False(t, ok)
		due, ok := s.Next(want + time.Millisecond)
		require.True(t, ok)
		require.InDelta(t, want, due, float64(time.Microsecond))
	}
}

func TestNewRefusesABadConfig(t *testing.T) {
	good := Config{ServiceURL: "pulsar://127.0.0.1:1", Topic: "t"}
	for name, test := range map[string]struct {
		spoil func(*Config)
		want  string
	}{
		"no broker":                   {func(c *Config) { c.ServiceURL = "" }, "ServiceURL is empty"},
		"no topic":                    {func(c *Config) { c.Topic = "" }, "Topic is empty"},
		"a message without room":      {func(c *Config) { c.Bytes = 7 }, "bytes is 7"},
		"keys below zero":             {func(c *Config) { c.Keys = -1 }, "keys.count is -1"},
		"batching neither on nor off": {func(c *Config) { c.Batching = 2 }, "Batching is 2"},
	} {
		t.Run(name, func(t *testing.T) {
			config := good
			test.spoil(&config)
			_, err := New(config)
			require.ErrorContains(t, err, test.want)
		})
	}
}
