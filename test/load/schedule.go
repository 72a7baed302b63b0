// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"math"
	"time"
)

// cell is the time within which a profile counts as constant. Cells are counted from the start, whenever the clock is
// looked at: what is due depends on the elapsed time alone, and a step at a whole millisecond is exact.
const cell = time.Millisecond

// Profile is a rate in messages per second at a time since the start. Below 0 it counts as 0.
type Profile func(elapsed time.Duration) (perSecond float64)

// Constant is the same rate for ever.
func Constant(perSecond float64) Profile {
	return func(time.Duration) float64 { return perSecond }
}

// schedule are the arrivals of a profile. Nothing is ever forgiven, so it never drifts.
type schedule struct {
	profile Profile
	begin   time.Duration // of the cell
	owed    float64       // messages until then
	taken   int64
}

// Next integrates the profile until the next message.
func (s *schedule) Next(until time.Duration) (due time.Duration, ok bool) {
	// A millionth of a message: summing 0.1 ten times must make one.
	const whole = 1e-6
	for ; s.begin < until; s.begin += cell {
		rate := s.rate(s.begin + cell/2)
		if missing := float64(s.taken+1) - whole - s.owed; missing <= rate*cell.Seconds() {
			if due = s.begin + time.Duration(max(0, missing)/rate*float64(time.Second)); due > until {
				return 0, false
			}
			s.taken++
			return due, true
		}
		if s.begin+cell > until {
			return 0, false
		}
		s.owed += rate * cell.Seconds()
	}
	return 0, false
}

// End is never.
func (s *schedule) End() time.Duration { return math.MaxInt64 }

func (s *schedule) rate(elapsed time.Duration) float64 {
	if rate := s.profile(elapsed); rate > 0 { // false for NaN too
		return rate
	}
	return 0
}
