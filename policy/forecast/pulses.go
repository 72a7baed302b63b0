// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"slices"
	"time"
)

// Rate is an arrival rate in messages per second, over a window that ended at a time.
type Rate struct {
	PerSecond float64
	Window    time.Duration
	At        time.Time
}

// Pulses are the last loads that began at once and ended again. A Pulses is never modified: Learn returns a new one.
type Pulses struct {
	// Past pulses, oldest first. While the last one runs, it has no length.
	Past []Pulse `json:"past,omitempty"`
	// Base is the arrival rate between pulses, and High the highest one of the last pulse, in messages per second.
	Base float64 `json:"base"`
	High float64 `json:"high"`
	// Foreseen of the last Expected pulses began when they were expected.
	Foreseen float64 `json:"foreseen"`
	Expected float64 `json:"expected"`
}

// Pulse is one pulse.
type Pulse struct {
	Begin time.Time `json:"t"`
	// Seconds that it lasted; 0 while it runs. Messages are those beyond the base.
	Seconds  float64 `json:"s"`
	Messages float64 `json:"m"`
}

const (
	// pastPulses are enough to foresee three different pulses in a period, and to forget others within a few periods.
	pastPulses = 10
	// A pulse exceeds the base by this share of it, by this many deviations, and by this many messages in a window.
	pulseShare, pulseDeviations, pulseMessages = 0.5, 4, 4
	// baseTime is the time constant of the base.
	baseTime = 2 * time.Minute
	// longestWindow: the beginning of a pulse within a longer window is unknown.
	longestWindow = time.Minute
	// smallPulse is the share of another pulse's messages below which one is noise.
	smallPulse = 0.05
	// joined is how soon after its end a pulse continues: polls that miss messages look like an end.
	joined = 20 * time.Second
	// longestPulse: a load that stays for longer is none.
	longestPulse = 4 * time.Hour
	// recorded is how many pulses Foreseen and Expected remember.
	recorded = 40
)

// Learn learns from the newest rate over a window above 0 and the standard deviation of the base over that window.
func (p Pulses) Learn(rate Rate, deviation float64) Pulses {
	extra, seconds := rate.PerSecond-p.Base, rate.Window.Seconds()
	switch running := p.Running(); {
	case p.Base == 0:
		p.Base = max(rate.PerSecond, smallest)
	case rate.Window > longestWindow && running && p.outlasts(rate, extra):
		p.Past = slices.Clone(p.Past)
		p.Past[len(p.Past)-1].Messages += extra * seconds
	case rate.Window > longestWindow && running: // its end was not seen
		p.Past = p.Past[:len(p.Past)-1]
	case rate.Window > longestWindow:
	case running && rate.At.Sub(p.Past[len(p.Past)-1].Begin) > longestPulse: // it is the base by now
		p.Past, p.Base = p.Past[:len(p.Past)-1], max(rate.PerSecond, smallest)
	case running:
		return p.continued(rate, extra)
	case extra > max(pulseShare*p.Base, pulseDeviations*deviation, pulseMessages/seconds):
		return p.begun(rate, extra)
	default:
		p.Base = max(smallest, p.Base+min(1, seconds/baseTime.Seconds())*extra)
	}
	return p
}

// outlasts reports whether the running pulse goes on after a gap, and not the one after it.
func (p Pulses) outlasts(rate Rate, extra float64) bool {
	last := len(p.Past) - 1
	for i := range last {
		if next := p.Past[last].Begin.Add(p.Past[i+1].Begin.Sub(p.Past[i].Begin)); !rate.At.Before(next) {
			return false
		}
	}
	return extra >= (p.High-p.Base)/2
}

// smallest is a base that is no longer unknown: one message in three years.
const smallest = 1e-8

// Running reports whether a pulse runs.
func (p Pulses) Running() bool {
	return len(p.Past) > 0 && p.Past[len(p.Past)-1].Seconds == 0
}

// begun is at the first window of a pulse. It began anywhere in this window: the next one tells.
func (p Pulses) begun(rate Rate, extra float64) Pulses {
	begin, past := rate.At.Add(-rate.Window), p.Past
	if n := len(past); n > 0 && begin.Sub(past[n-1].end()) < joined {
		past = append([]Pulse(nil), past...)
		past[n-1].Seconds = 0
		past[n-1].Messages += extra * rate.Window.Seconds()
		p.Past = past
		return p
	}
	p = p.scored(begin)
	if most := pastPulses - 1; len(past) > most {
		past = past[len(past)-most:]
	}
	one := Pulse{Begin: begin, Messages: extra * rate.Window.Seconds()}
	p.Past, p.High = append(append([]Pulse(nil), past...), one), rate.PerSecond
	return p
}

// continued is in a pulse, or at its end: less than half of its height.
func (p Pulses) continued(rate Rate, extra float64) Pulses {
	p.Past = append([]Pulse(nil), p.Past...)
	last, height := &p.Past[len(p.Past)-1], p.High-p.Base
	last.Messages += max(0, extra) * rate.Window.Seconds()
	if extra < height/2 {
		rest := time.Duration((1 - max(0, extra)/height) * float64(rate.Window))
		last.Seconds = max(1, rate.At.Add(-rest).Sub(last.Begin).Seconds())
		return p.withoutNoise()
	}
	if rate.PerSecond > p.High {
		if second := rate.At.Sub(last.Begin) < 5*rate.Window/2; second { // the first window was a part of the pulse
			last.Begin = last.Begin.Add(time.Duration((1 - height/extra) * float64(rate.Window)))
		}
		p.High = rate.PerSecond
	}
	return p
}

// withoutNoise forgets the last pulse if it is far smaller than those that are expected; if none are, it may be the
// first of smaller ones. The record keeps that it was not expected.
func (p Pulses) withoutNoise() Pulses {
	last := len(p.Past) - 1
	before := Pulses{Past: p.Past[:last]}
	if next, expected := before.Next(p.Past[last].Begin); expected && p.Past[last].Messages < smallPulse*next.largest {
		p.Past = before.Past
	}
	return p
}

// large leaves out pulses that are far smaller than another one. One that runs may grow.
func (p Pulses) large() Pulses {
	var largest float64
	for _, one := range p.Past {
		largest = max(largest, one.Messages)
	}
	p.Past = slices.DeleteFunc(slices.Clone(p.Past), func(one Pulse) bool {
		return one.Seconds > 0 && one.Messages < smallPulse*largest
	})
	return p
}

func (p Pulse) end() time.Time {
	return p.Begin.Add(time.Duration(p.Seconds * float64(time.Second)))
}
