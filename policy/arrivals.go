// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Arrivals is the learned load: its rate, its trend, and how fast it rises.
type Arrivals struct {
	// At is when the last rate was measured.
	At time.Time `json:"at,omitzero"`
	// Fast and Slow are the publish rate in messages per second, smoothed over 20 and 90 s. Deviation is the mean distance
	// of a new rate from Fast.
	Fast      float64 `json:"fast,omitempty" state:"rate"`
	Slow      float64 `json:"slow,omitempty" state:"rate"`
	Deviation float64 `json:"dev,omitempty" state:"rate"`
	// Rise is the relative rise to expect within a reaction time: the largest recent one. It decays over 40 min.
	Rise float64 `json:"rise,omitempty"`
	// Peak is the highest recent Fast. It decays over an hour. Headroom covers a load that was seen before, not more.
	Peak float64 `json:"peak,omitempty" state:"rate"`
	// Rose is true if the last rate was a step up. FellAt is when rates fell far below Fast: another low rate, one rate
	// window later, confirms a step down.
	Rose   bool      `json:"rose,omitempty"`
	FellAt time.Time `json:"fell,omitzero"`
	// Past has the values of Fast within the last reaction time, oldest first.
	Past []RateAt `json:"past,omitempty"`
}

// RateAt is a rate in messages per second at a time.
type RateAt struct {
	At   time.Time `json:"t,omitzero"`
	Rate float64   `json:"r,omitempty" state:"rate"`
}

const (
	fastSeconds   = 20
	slowSeconds   = 90
	riseForgotten = 40 * time.Minute
	peakForgotten = time.Hour
	// Rise starts at firstRise, moves half way to a larger rise at once, and stays within its bounds.
	firstRise, riseWeight = 0.3, 0.5
	minRise, maxRise      = 0.05, 6
	// A change by this share and by this many deviations is a step. A step up counts at once. A step down needs a second
	// low rate, since a poll that missed messages looks the same.
	stepShare, stepDeviations = 0.3, 3
	// plungedShare: a rate below this share of Fast is a step down whatever the deviation, since a wrong rate that was
	// learned also raised the deviation.
	plungedShare = 0.01
	// fallConfirmed is the window of a rate: two rates that are closer share measurements.
	fallConfirmed = 8 * time.Second
	// surgeShare exceeds the random variation of independent messages.
	surgeShare = 0.2
	// pastRates is how many rates of a reaction time Arrivals keeps.
	pastRates = 16
	// noise is the number of deviations by which Fast has to exceed Slow for a trend. A trend leads to at most a tenth
	// above Peak: after a step it would otherwise rise for as long as Slow takes to follow.
	noise, trendOverPeak = 1.5, 1.1
)

// measuredRate is a publish rate in messages per second, measured over a window that ended at a time.
type measuredRate struct {
	rate   float64
	window time.Duration
	at     time.Time
}

// publishRate is the publish rate of a reading. A load step enters the rate window gradually, so the newest rate
// replaces the window's rate while it is clearly higher, or right after a step if it is higher at all. A lower bound
// counts if it exceeds the learned rate.
func (a *Arrivals) publishRate(r backlog.Reading) (measuredRate, error) {
	rate, err := r.PublishRate.Value()
	if err != nil {
		least, none := r.PublishRate.LowerBound()
		if none != nil || least == 0 || (a != nil && least <= a.Fast) {
			return measuredRate{}, err
		}
		return measuredRate{least, r.Window, r.At}, nil
	}
	newest, unknown := r.LatestPublishRate.Value()
	latest := measuredRate{newest, r.LatestWindow, r.At}
	threshold := max(stepShare*rate, stepDeviations*latest.poissonDeviation(rate))
	if a != nil && a.Rose {
		threshold = 0
	}
	if unknown == nil && newest-rate > threshold {
		return latest, nil
	}
	return measuredRate{rate, r.Window, r.At}, nil
}

// learnArrivals learns from a publish rate; react is the reaction time in seconds.
func learnArrivals(before *Arrivals, p measuredRate, react float64) *Arrivals {
	if before == nil {
		return &Arrivals{
			At: p.at, Fast: p.rate, Slow: p.rate, Peak: p.rate, Rise: firstRise,
			Past: []RateAt{{At: p.at, Rate: p.rate}},
		}
	}
	elapsed := time.Duration(0)
	if !before.At.IsZero() {
		elapsed = max(0, p.at.Sub(before.At))
	}
	seconds := elapsed.Seconds()
	after, gap := *before, p.rate-before.Fast
	// Few messages are no step. The deviation is that of the mean of both rates, since a rate of none has a deviation of
	// 0.
	step := math.Abs(gap) > max(stepShare*before.Fast, stepDeviations*before.Deviation,
		stepDeviations*p.poissonDeviation((before.Fast+p.rate)/2))
	after.At, after.Rose = p.at, step && gap > 0
	after.Deviation += smoothing(seconds, slowSeconds) * (math.Abs(gap) - before.Deviation)
	after.Fast += smoothing(seconds, fastSeconds) * gap
	after.Slow += smoothing(seconds, slowSeconds) * (p.rate - before.Slow)
	switch {
	case after.Rose:
		after.Fast = p.rate
	case before.Rose: // this rate measures the whole step
		after.Fast = max(after.Fast, p.rate)
		after.Slow = max(after.Slow, after.Fast)
	}
	plunged := p.rate > 0 && p.rate < plungedShare*before.Fast
	after.confirmFall(before, p, step && gap < 0 || plunged)
	if plunged && after.FellAt.IsZero() {
		after.Deviation = min(after.Deviation, p.rate)
	}
	after.Peak = max(after.Fast, before.Peak+smoothing(seconds, peakForgotten.Seconds())*(after.Fast-before.Peak))
	after.learnRise(p.at, elapsed, react)
	return &after
}

// poissonDeviation is the standard deviation of a rate of independent messages, counted over the window.
func (p measuredRate) poissonDeviation(rate float64) float64 {
	return math.Sqrt(rate / max(1, p.window.Seconds()))
}

// confirmFall accepts a step down at its second low rate.
func (a *Arrivals) confirmFall(before *Arrivals, p measuredRate, far bool) {
	switch {
	case !far:
		a.FellAt = time.Time{}
	case before.FellAt.IsZero():
		a.FellAt = p.at
	case p.at.Sub(before.FellAt) >= fallConfirmed:
		a.Fast, a.Slow, a.FellAt = p.rate, p.rate, time.Time{}
	}
}

// learnRise compares the mean rate of a reaction time with the rate before: replicas have to process the difference
// until new ones consume. A flood of a few seconds counts less than its peak. After a gap there is no rise.
func (a *Arrivals) learnRise(now time.Time, elapsed time.Duration, react float64) {
	past := a.Past
	for len(past) > 1 && now.Sub(past[1].At).Seconds() >= react {
		past = past[1:]
	}
	if len(past) == 0 || now.Sub(past[0].At).Seconds() > 2*react {
		a.Past = []RateAt{{At: now, Rate: a.Fast}}
		return
	}
	if first := past[0]; now.Sub(first.At).Seconds() >= 0.8*react && first.Rate > 0 {
		if rise := meanSince(past, RateAt{At: now, Rate: a.Fast})/first.Rate - 1; rise > a.Rise {
			a.Rise += riseWeight * (rise - a.Rise)
		} else {
			a.Rise *= 1 - smoothing(elapsed.Seconds(), riseForgotten.Seconds())
		}
		a.Rise = min(maxRise, max(minRise, a.Rise))
	}
	if now.Sub(past[len(past)-1].At).Seconds() < react/pastRates {
		a.Past = past
		return
	}
	a.Past = append(append(make([]RateAt, 0, len(past)+1), past...), RateAt{At: now, Rate: a.Fast})
}

// meanSince is the mean of the rates since the first, up to the newest.
func meanSince(past []RateAt, newest RateAt) float64 {
	sum, last := 0.0, past[0].At
	for _, r := range past[1:] {
		sum += r.Rate * r.At.Sub(last).Seconds()
		last = r.At
	}
	sum += newest.Rate * newest.At.Sub(last).Seconds()
	return sum / newest.At.Sub(past[0].At).Seconds()
}

// surge reports whether the load rose by a fifth within a reaction time.
func (a *Arrivals) surge() bool {
	return a != nil && len(a.Past) > 0 && a.Fast > (1+surgeShare)*a.Past[0].Rate
}

// smoothing is the weight of a new value after an interval in seconds, for a time constant.
func smoothing(seconds, constant float64) float64 { return 1 - math.Exp(-max(0, seconds)/constant) }

// plannedRate is the rate to plan for: the current one, or the one that a clear trend reaches within a reaction time.
func (a *Arrivals) plannedRate(in Input, react float64) float64 {
	up := a.Fast
	if gap := a.Fast - a.Slow; gap > noise*a.Deviation && !in.without(PartTrend) {
		trend := gap / (slowSeconds - fastSeconds)
		up = max(a.Fast, min(a.Fast+trend*react, trendOverPeak*a.Peak))
	}
	return max(up, a.Slow)
}

const (
	// minUtilization leaves room for a sixfold rise. At 0.5, messages were late in the first minute of each pulse where
	// replicas take longer to start than the objective allows.
	minUtilization = 0.15
	maxUtilization = 0.93
	// peakMargin is the useful headroom above Peak.
	peakMargin = 1.05
	// simpleUtilization is the target of the "simple" form, for an ablation.
	simpleUtilization = 0.7
)

// targetUtilization is the utilization to plan for. Headroom covers what may arrive before new replicas consume; a long
// objective needs less of it.
func (a *Arrivals) targetUtilization(in Input, planned, react float64) float64 {
	if in.without(PartHeadroom) {
		return simpleUtilization
	}
	tolerated := 1 + LatencyObjective(in.Spec).Seconds()/react
	wanted := min(maxUtilization, max(minUtilization, tolerated/(1+a.Rise)))
	if a.Peak <= 0 {
		return wanted
	}
	return max(wanted, min(maxUtilization, planned/(peakMargin*a.Peak)))
}
