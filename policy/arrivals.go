// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Arrivals is what was learned of the load: how much there is, where it is going, and how fast it rises.
type Arrivals struct {
	// At is when the last rate was measured.
	At time.Time `json:"at,omitzero"`
	// Fast and Slow are the publish rate in messages per second, smoothed over 20 and 90 s, and Deviation is the mean
	// distance of a new rate from Fast.
	Fast      float64 `json:"fast,omitempty"`
	Slow      float64 `json:"slow,omitempty"`
	Deviation float64 `json:"dev,omitempty"`
	// Rise is the relative rise that is to be expected within a reaction time: the largest lately, forgotten over 40 min.
	Rise float64 `json:"rise,omitempty"`
	// Peak is the highest Fast lately, forgotten over an hour: there is room for what was seen before, not for more.
	Peak float64 `json:"peak,omitempty"`
	// Rose says that the last rate was a step up, and FellAt since when rates were far below Fast: one a rate's window
	// later that is so too makes a step down.
	Rose   bool      `json:"rose,omitempty"`
	FellAt time.Time `json:"fell,omitzero"`
	// Past has Fast of the last reaction time, oldest first.
	Past []RateAt `json:"past,omitempty"`
}

// RateAt is a rate in messages per second at a time.
type RateAt struct {
	At   time.Time `json:"t,omitzero"`
	Rate float64   `json:"r,omitempty"`
}

const (
	fastSeconds   = 20
	slowSeconds   = 90
	riseForgotten = 40 * time.Minute
	peakForgotten = time.Hour
	// Rise begins at firstRise, follows a larger one half way at once, and keeps within its bounds.
	firstRise, riseWeight = 0.3, 0.5
	leastRise, mostRise   = 0.05, 6
	// A change by this share that stands out by so many deviations is a step. Up, it is taken at once; down, when the next
	// rate says so too, since a poll that missed messages looks the same.
	stepShare, stepDeviations = 0.3, 3
	// fallConfirmed is the window of a rate: within it one poll is seen again.
	fallConfirmed = 8 * time.Second
	// pastRates is how many rates of a reaction time are kept.
	pastRates = 16
	// noise is how many deviations Fast has to be above Slow for a trend, which leads a tenth above the Peak at most:
	// after a step it would go on rising for as long as Slow takes to follow.
	noise, abovePeak = 1.5, 1.1
)

// published is a publish rate in messages per second, measured over a window that ended at a time.
type published struct {
	rate   float64
	window time.Duration
	at     time.Time
}

// arriving is the publish rate of a reading. A load step enters the rate window in pieces, so the newest answers
// replace the window while they are clearly higher, or higher at all right after a step.
func (a *Arrivals) arriving(r backlog.Reading) (published, error) {
	rate, err := r.PublishRate.Value()
	if err != nil {
		return published{}, err
	}
	newest, unknown := r.LatestPublishRate.Value()
	latest := published{newest, r.LatestWindow, r.At}
	threshold := max(stepShare*rate, stepDeviations*latest.luck(rate))
	if a != nil && a.Rose {
		threshold = 0
	}
	if unknown == nil && newest-rate > threshold {
		return latest, nil
	}
	return published{rate, r.Window, r.At}, nil
}

// learnArrivals takes in a publish rate; react is the reaction time in seconds.
func learnArrivals(before *Arrivals, p published, react float64) *Arrivals {
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
	step := math.Abs(gap) > max(stepShare*before.Fast, stepDeviations*before.Deviation, stepDeviations*p.luck(before.Fast))
	after.At, after.Rose = p.at, step && gap > 0
	after.Deviation += smoothing(seconds, slowSeconds) * (math.Abs(gap) - before.Deviation)
	after.Fast += smoothing(seconds, fastSeconds) * gap
	after.Slow += smoothing(seconds, slowSeconds) * (p.rate - before.Slow)
	switch {
	case after.Rose:
		after.Fast = p.rate
	case before.Rose: // what is there now is all of the step
		after.Fast = max(after.Fast, p.rate)
		after.Slow = max(after.Slow, after.Fast)
	}
	after.fall(before, p, step && gap < 0)
	after.Peak = max(after.Fast, before.Peak+smoothing(seconds, peakForgotten.Seconds())*(after.Fast-before.Peak))
	after.learnRise(p.at, elapsed, react)
	return &after
}

// luck is the deviation of a rate of independent messages that were counted over the window.
func (p published) luck(rate float64) float64 {
	return math.Sqrt(rate / max(1, p.window.Seconds()))
}

// fall takes a step down once it was seen twice.
func (a *Arrivals) fall(before *Arrivals, p published, far bool) {
	switch {
	case !far:
		a.FellAt = time.Time{}
	case before.FellAt.IsZero():
		a.FellAt = p.at
	case p.at.Sub(before.FellAt) >= fallConfirmed:
		a.Fast, a.Slow, a.FellAt = p.rate, p.rate, time.Time{}
	}
}

// learnRise compares with the rate one reaction time ago. After a gap there is none.
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
		if rise := a.Fast/first.Rate - 1; rise > a.Rise {
			a.Rise += riseWeight * (rise - a.Rise)
		} else {
			a.Rise *= 1 - smoothing(elapsed.Seconds(), riseForgotten.Seconds())
		}
		a.Rise = min(mostRise, max(leastRise, a.Rise))
	}
	if now.Sub(past[len(past)-1].At).Seconds() < react/pastRates {
		a.Past = past
		return
	}
	a.Past = append(append(make([]RateAt, 0, len(past)+1), past...), RateAt{At: now, Rate: a.Fast})
}

// smoothing is the weight of what is new after a time, for a time constant.
func smoothing(seconds, constant float64) float64 { return 1 - math.Exp(-max(0, seconds)/constant) }

// planned is the rate to be ready for: what there is, and where a clear trend leads within a reaction time.
func (a *Arrivals) planned(in Input, react float64) float64 {
	up := a.Fast
	if gap := a.Fast - a.Slow; gap > noise*a.Deviation && !in.without(PartTrend) {
		trend := gap / (slowSeconds - fastSeconds)
		up = max(a.Fast, min(a.Fast+trend*react, abovePeak*a.Peak))
	}
	return max(up, a.Slow)
}

const (
	// leastUtilisation leaves room for a rise to six times as much. At 0.5 what arrived in the first minute of a pulse,
	// where replicas take longer to start than the objective forgives, was late each time.
	leastUtilisation = 0.15
	mostUtilisation  = 0.93
	// ofPeak is the room above the Peak that is worth having.
	ofPeak = 1.05
	// plainUtilisation is that of the "simple" form, for an ablation.
	plainUtilisation = 0.7
)

// utilisation to plan for at a planned rate: what may arrive before help is ready costs headroom, what the objective
// forgives earns it.
func (a *Arrivals) utilisation(in Input, planned, react float64) float64 {
	if in.without(PartHeadroom) {
		return plainUtilisation
	}
	forgiven := 1 + latencyObjective(in.Spec).Seconds()/react
	wanted := min(mostUtilisation, max(leastUtilisation, forgiven/(1+a.Rise)))
	if a.Peak <= 0 {
		return wanted
	}
	return max(wanted, min(mostUtilisation, planned/(ofPeak*a.Peak)))
}
