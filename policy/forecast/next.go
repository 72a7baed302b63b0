// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"math"
	"time"
)

// Next is the pulse that is expected next.
type Next struct {
	// Begin is when it is expected, Spread earlier or later.
	Begin  time.Time
	Spread time.Duration
	// PerSecond is the expected rate of all arrivals during it, in messages per second.
	PerSecond float64
	// Regular is how many pulses in a row came after the same period.
	Regular int
	// Foreseen of the last Of pulses, up to 40, began when they were expected.
	Foreseen, Of int32
	// tolerance is how much earlier or later it counts as foreseen.
	tolerance time.Duration
	// largest is the number of messages of the largest pulse of the last period.
	largest float64
}

const (
	// most different pulses in a period, and intervals that the period is the mean of.
	mostKinds, mostIntervals = 3, 4
	// meanOf is the number of earlier pulses that the time and the size of the next one is the mean of.
	meanOf = 3
	// Intervals are regular if they differ from their mean by at most this share of the time between two pulses, from
	// leastTolerance to mostTolerance: replicas are there that much earlier, and stay that much longer.
	toleranceShare = 0.1
	leastTolerance = 15 * time.Second
	mostTolerance  = 3 * time.Minute
	// shortestPeriod between two pulses: more frequent ones are noise.
	shortestPeriod = time.Minute
	// leastSpread is half of a poll.
	leastSpread = 5 * time.Second
)

// Next is the pulse that is expected next, or that is a little late; false if pulses are not regular, or if one did not
// come.
func (p Pulses) Next(now time.Time) (Next, bool) {
	next, period, regular := p.next()
	next.Foreseen, next.Of = int32(math.Round(min(recorded, p.Foreseen))), int32(math.Round(min(recorded, p.Expected)))
	return next, regular && now.Sub(next.Begin) < period
}

// next does so whatever the time is. It prefers all pulses to the large ones, and the least number of different ones.
func (p Pulses) next() (next Next, period time.Duration, regular bool) {
	for _, pulses := range []Pulses{p, p.large()} {
		for kinds := 1; kinds <= mostKinds; kinds++ {
			if next, period, regular = pulses.after(kinds); regular {
				return next, period, true
			}
		}
	}
	return Next{}, 0, false
}

// after is the next pulse if each comes a period after the one that many before it.
func (p Pulses) after(kinds int) (next Next, period time.Duration, regular bool) {
	n := len(p.Past)
	intervals := make([]time.Duration, max(0, n-kinds)) // the newest first
	for i := range intervals {
		intervals[i] = p.Past[n-1-i].Begin.Sub(p.Past[n-1-i-kinds].Begin)
	}
	used := min(len(intervals), mostIntervals)
	if used <= kinds {
		return Next{}, 0, false
	}
	for _, one := range intervals[:used] {
		period += one / time.Duration(used)
	}
	share := time.Duration(toleranceShare * float64(period) / float64(kinds))
	next.tolerance = min(mostTolerance, max(leastTolerance, share))
	for i, one := range intervals {
		off := (one - period).Abs()
		if off > next.tolerance {
			break
		}
		next.Regular++
		if i < used {
			next.Spread = max(next.Spread, leastSpread, off)
		}
	}
	if next.Regular < used || period < time.Duration(kinds)*shortestPeriod {
		return Next{}, 0, false
	}
	p.expect(&next, kinds, period)
	return next, period, true
}

// expect sets the time and the rate of the next pulse: the mean of those before it.
func (p Pulses) expect(next *Next, kinds int, period time.Duration) {
	var begin time.Duration // after the last of those
	var seconds, messages, count float64
	first := len(p.Past) - kinds
	for i := first; i >= 0 && count < meanOf; i -= kinds {
		count++
		one := p.Past[i]
		begin += one.Begin.Sub(p.Past[first].Begin) + time.Duration(count)*period
		seconds, messages = seconds+one.Seconds, messages+one.Messages
	}
	next.Begin = p.Past[first].Begin.Add(begin / time.Duration(count))
	next.PerSecond = p.Base + messages/max(count, seconds)
	for _, one := range p.Past[first:] {
		next.largest = max(next.largest, one.Messages)
	}
}

// scored compares the beginning of a pulse with what was expected.
func (p Pulses) scored(begin time.Time) Pulses {
	next, _, regular := p.next()
	if !regular {
		return p
	}
	if p.Expected >= recorded {
		p.Foreseen, p.Expected = p.Foreseen*(recorded-1)/recorded, recorded-1
	}
	p.Expected++
	if begin.Sub(next.Begin).Abs() <= next.tolerance {
		p.Foreseen++
	}
	return p
}

// Weight is from 0 to 1: how much of the headroom the record replaces. The nine intervals that Pulses remembers replace
// two thirds: the next pulse may come at another time all the same.
func (n Next) Weight() float64 {
	const none, all = 5, 11
	return min(1, math.Max(0, float64(n.Regular-none)/(all-none)))
}
