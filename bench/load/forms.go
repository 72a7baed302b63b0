// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// point is a rate at a time. Between two points the rate is linear, and steps at two points of the same time.
type point struct {
	second, rate float64
}

// field is a number with bounds.
type field struct {
	name  string
	value float64
	most  float64
}

// rates checks that all fields are rates.
func rates(fields ...field) error {
	for _, f := range fields {
		most := cmp.Or(f.most, maxRate)
		if !(f.value >= 0 && f.value <= most) { // false for NaN too
			return fmt.Errorf("%s is %g: it must be from 0 to %g", f.name, f.value, most)
		}
	}
	return nil
}

func (c Constant) points(end time.Duration) ([]point, error) {
	return []point{{0, c.Rate}, {end.Seconds(), c.Rate}}, rates(field{name: "constant.rate", value: c.Rate})
}

func (s Step) points(end time.Duration) ([]point, error) {
	at, until := s.At.Duration, cmp.Or(s.Until.Duration, end)
	switch {
	case at < 0 || at >= end:
		return nil, fmt.Errorf("step.at is %s: it must be from 0 to before load.duration, %s", at, end)
	case until <= at || until > end:
		return nil, fmt.Errorf("step.until is %s: it must be after step.at, %s, and within load.duration, %s", until, at, end)
	}
	return []point{
		{0, s.From},
		{at.Seconds(), s.From},
		{at.Seconds(), s.To},
		{until.Seconds(), s.To},
		{until.Seconds(), s.From},
		{end.Seconds(), s.From},
	}, rates(field{name: "step.from", value: s.From}, field{name: "step.to", value: s.To})
}

func (r Ramp) points(end time.Duration) ([]point, error) {
	begin, until := r.Begin.Duration, cmp.Or(r.End.Duration, end)
	if begin < 0 || begin >= until || until > end {
		return nil, fmt.Errorf("ramp is from %s to %s: it must begin before it ends, and within load.duration, %s",
			begin, until, end)
	}
	return []point{{0, r.From}, {begin.Seconds(), r.From}, {until.Seconds(), r.To}, {end.Seconds(), r.To}},
		rates(field{name: "ramp.from", value: r.From}, field{name: "ramp.to", value: r.To})
}

func (w Wave) points(end time.Duration) ([]point, error) {
	period := w.Period.Duration
	switch {
	case period <= 0 || end/period >= maxRepeats:
		return nil, fmt.Errorf("wave.period is %s: it must be above 0, and at least %s for load.duration %s", period,
			end/maxRepeats, end)
	case w.High < w.Low:
		return nil, fmt.Errorf("wave.high is %g: it must be at least wave.low, %g", w.High, w.Low)
	}
	var drawn []point
	for i := 0; ; i++ {
		turn := float64(i) / waveParts
		rate := w.Low + (w.High-w.Low)*(1-math.Cos(2*math.Pi*turn))/2
		drawn = append(drawn, point{turn * period.Seconds(), rate})
		if turn*period.Seconds() >= end.Seconds() {
			break
		}
	}
	return drawn, rates(field{name: "wave.low", value: w.Low}, field{name: "wave.high", value: w.High})
}

func (b Burst) points(end time.Duration) ([]point, error) {
	within, every := cmp.Or(b.Within.Duration, time.Second), cmp.Or(b.Every.Duration, end)
	at := b.At.Duration
	switch {
	case within <= 0 || at < 0 || at+within > end:
		return nil, fmt.Errorf("burst is %s long and begins at %s: it must be within load.duration, %s", within, at, end)
	case every < within || end/every >= maxRepeats:
		return nil, fmt.Errorf("burst.every is %s: it must be at least burst.within, %s, and %s for load.duration %s", every,
			within, end/maxRepeats, end)
	}
	high := b.Rate + b.Messages/within.Seconds()
	err := rates(field{name: "burst.rate", value: b.Rate}, field{name: "the rate of the burst", value: high},
		field{name: "burst.messages", value: b.Messages, most: maxMessages})
	if err != nil {
		return nil, err
	}
	drawn := []point{{0, b.Rate}}
	for ; at < end; at += every {
		begin, until := at.Seconds(), (at + within).Seconds()
		drawn = append(drawn, point{begin, b.Rate}, point{begin, high}, point{until, high}, point{until, b.Rate})
	}
	return append(drawn, point{max(end.Seconds(), drawn[len(drawn)-1].second), b.Rate}), nil
}

func (r recording) points(end time.Duration) ([]point, error) {
	scale := cmp.Or(r.Scale, 1)
	switch {
	case r.Offset.Duration < 0 || r.rest() < end:
		return nil, fmt.Errorf("replay has %s after the offset: it must have load.duration, %s; lower one of them",
			r.rest(), end)
	case !(scale > 0 && scale <= maxRate):
		return nil, fmt.Errorf("replay.scale is %g: it must be above 0 and at most %g", r.Scale, maxRate)
	}
	begin := r.Offset.Seconds()
	drawn := []point{{0, scale * r.load.Rate(begin)}}
	highest := drawn[0].rate
	for second, rate := range r.load.Rows() {
		if second > begin {
			drawn = append(drawn, point{second - begin, scale * rate})
			highest = max(highest, scale*rate)
		}
	}
	return drawn, rates(field{name: "the highest rate of replay.file", value: highest})
}
