// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"math"
	"time"
)

const (
	// finest is the shortest wait between two looks at the clock: 1000 messages/s leave one by one, more in small groups.
	finest = time.Millisecond
	// coarsest is the longest wait, so that a profile that rises is followed.
	coarsest = 10 * time.Millisecond
	// cell is the time within which a profile counts as constant. Cells are counted from the start, whenever the clock is
	// looked at: what is due depends on the elapsed time alone, and a step at a whole millisecond is exact.
	cell = time.Millisecond
)

// Profile is a rate in messages per second at a time since the start. Below 0 it counts as 0.
type Profile func(elapsed time.Duration) (perSecond float64)

// Constant is the same rate for ever.
func Constant(perSecond float64) Profile {
	return func(time.Duration) float64 { return perSecond }
}

// schedule says how many messages should have been sent. Nothing is ever forgiven, so it never drifts.
type schedule struct {
	profile Profile
	elapsed time.Duration // the profile is integrated up to here
	owed    float64       // messages since the start
	sent    int64
}

// advance integrates the profile up to elapsed and returns how many messages are due now.
func (s *schedule) advance(elapsed time.Duration) int64 {
	for s.elapsed < elapsed {
		begin := s.elapsed.Truncate(cell)
		step := min(begin+cell, elapsed) - s.elapsed
		s.owed += s.rate(begin+cell/2) * step.Seconds()
		s.elapsed += step
	}
	// A millionth of a message: summing 0.1 ten times must make one.
	return int64(math.Floor(s.owed+1e-6)) - s.sent
}

// wait is the time until the next message is due, as far as the rate now tells.
func (s *schedule) wait() time.Duration {
	rate := s.rate(s.elapsed)
	if rate <= 0 {
		return coarsest
	}
	missing := float64(s.sent+1) - s.owed
	if missing >= rate*coarsest.Seconds() {
		return coarsest
	}
	return max(finest, time.Duration(missing/rate*float64(time.Second)))
}

func (s *schedule) rate(elapsed time.Duration) float64 {
	if rate := s.profile(elapsed); rate > 0 { // false for NaN too
		return rate
	}
	return 0
}
