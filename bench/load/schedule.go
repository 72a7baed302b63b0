// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"iter"
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// whole is the tolerance for rounding: ten tenths must make one message.
const whole = 1e-6

// Schedule says when each message of a load is due, since the load began.
type Schedule struct {
	segments []segment
	end      time.Duration
	total    float64
	process  ArrivalProcess
	seed     uint64
}

// segment is a time with a linear rate.
type segment struct {
	begin, length float64 // seconds
	from, to      float64 // messages per second
	before        float64 // messages before it begins
}

// newSchedule joins the points, up to the end, by straight lines.
func newSchedule(points []point, end time.Duration) Schedule {
	s := Schedule{end: end, process: Even}
	for i := range len(points) - 1 {
		at, next := points[i], points[i+1]
		length := min(next.second, end.Seconds()) - at.second
		if length <= 0 {
			continue
		}
		slope := (next.rate - at.rate) / (next.second - at.second)
		one := segment{
			begin: at.second, length: length, from: at.rate, to: max(0, at.rate+slope*length), before: s.total,
		}
		s.segments = append(s.segments, one)
		s.total += one.messages(length)
	}
	return s
}

// messages that are due in the first seconds of the segment.
func (s segment) messages(seconds float64) float64 {
	return seconds * (s.from + s.slope()*seconds/2)
}

func (s segment) slope() float64 { return (s.to - s.from) / s.length }

// after is when a number of messages of the segment is due, in seconds since the load began.
func (s segment) after(messages float64) float64 {
	root := math.Sqrt(max(0, s.from*s.from+2*s.slope()*messages))
	if messages <= 0 || s.from+root == 0 {
		return s.begin
	}
	return s.begin + min(s.length, 2*messages/(s.from+root))
}

// End is when the load ends.
func (s Schedule) End() time.Duration { return s.end }

// Rate at a time, in messages per second; 0 before and after the load.
func (s Schedule) Rate(at time.Duration) float64 {
	i, inside := s.at(at)
	if !inside {
		return 0
	}
	one := s.segments[i]
	return one.from + one.slope()*(at.Seconds()-one.begin)
}

// Messages is the integral of the rate until a time. As many are due, rounded down; with Poisson, on average.
func (s Schedule) Messages(until time.Duration) float64 {
	if until >= s.end {
		return s.total
	}
	i, inside := s.at(until)
	if !inside {
		return 0
	}
	one := s.segments[i]
	return one.before + one.messages(until.Seconds()-one.begin)
}

// at is the segment of a time; false outside the load.
func (s Schedule) at(moment time.Duration) (index int, inside bool) {
	if moment < 0 || moment >= s.end || len(s.segments) == 0 {
		return 0, false
	}
	next := sort.Search(len(s.segments), func(i int) bool { return s.segments[i].begin > moment.Seconds() })
	return max(0, next-1), true
}

// Due are the times at which messages are due, in order.
func (s Schedule) Due() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		arrivals := s.Arrivals()
		for {
			due, ok := arrivals.Next(s.end)
			if !ok || !yield(due) {
				return
			}
		}
	}
}

// Arrivals begins the load.
func (s Schedule) Arrivals() *Arrivals {
	return &Arrivals{Schedule: s, random: rand.New(rand.NewPCG(s.seed, 0))}
}

// Arrivals are the messages of a load in order. They are for one goroutine.
type Arrivals struct {
	Schedule

	random  *rand.Rand
	taken   int64
	place   float64 // of the next message, in messages; with Poisson a sum of random distances
	segment int
	isKnown bool // place is current
}

// Next takes the next message if it is due by then, and returns its time.
func (s *Arrivals) Next(until time.Duration) (due time.Duration, ok bool) {
	if !s.isKnown {
		s.place, s.isKnown = s.next(), true
	}
	if s.ended() {
		return 0, false
	}
	for s.segment+1 < len(s.segments) && s.place > s.segments[s.segment+1].before {
		s.segment++
	}
	one := s.segments[s.segment]
	due = min(s.end, time.Duration(one.after(s.place-one.before)*float64(time.Second)))
	if due > until {
		return 0, false
	}
	s.taken++
	s.isKnown = false
	return due, true
}

// ended reports whether the load has no next message.
func (s *Arrivals) ended() bool {
	if s.process == Poisson {
		return s.place > s.total
	}
	return float64(s.taken+1) > s.total+whole
}

func (s *Arrivals) next() float64 {
	switch s.process {
	case Jittered:
		return float64(s.taken) + 1 - s.random.Float64()
	case Poisson:
		return s.place + s.random.ExpFloat64()
	default:
		return float64(s.taken + 1)
	}
}
