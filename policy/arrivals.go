// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"time"
)

// Arrivals is what was learned of the load: how much there is, where it is going, and how fast it rises.
type Arrivals struct {
	// Fast and Slow are the publish rate in messages per second, smoothed over 20 and 90 s, and Deviation is the mean
	// distance of a new rate from Fast.
	Fast      float64 `json:"fast,omitempty"`
	Slow      float64 `json:"slow,omitempty"`
	Deviation float64 `json:"dev,omitempty"`
	// Rise is the relative rise that is to be expected within a reaction time: the largest lately, forgotten over 20 min.
	Rise float64 `json:"rise,omitempty"`
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
	riseForgotten = 20 * time.Minute
	// Rise begins at firstRise, follows a larger one half way at once, and keeps within its bounds.
	firstRise, riseWeight = 0.3, 0.5
	leastRise, mostRise   = 0.05, 1.5
	// A rise by this share that stands out by so many deviations is taken at once.
	jumpShare, jumpDeviations = 0.3, 3
	// noise is how many deviations Fast has to be above Slow for a trend.
	noise = 1.5
	// startSeconds from a scale write to a replica that consumes, and reactSeconds with the poll and the HPA's sync.
	startSeconds = 25
	reactSeconds = startSeconds + 25
)

// learnArrivals takes in a publish rate.
func learnArrivals(before *Arrivals, rate float64, now time.Time, elapsed time.Duration) *Arrivals {
	if before == nil {
		return &Arrivals{Fast: rate, Slow: rate, Rise: firstRise, Past: []RateAt{{At: now, Rate: rate}}}
	}
	seconds := max(0, elapsed.Seconds())
	after := *before
	after.Deviation += smoothing(seconds, slowSeconds) * (math.Abs(rate-before.Fast) - before.Deviation)
	if gap := rate - before.Fast; gap > jumpShare*before.Fast && gap > jumpDeviations*before.Deviation {
		after.Fast = rate
	} else {
		after.Fast += smoothing(seconds, fastSeconds) * gap
	}
	after.Slow += smoothing(seconds, slowSeconds) * (rate - before.Slow)
	after.learnRise(now, elapsed)
	return &after
}

// learnRise compares with the rate one reaction time ago.
func (a *Arrivals) learnRise(now time.Time, elapsed time.Duration) {
	past := a.Past
	for len(past) > 1 && now.Sub(past[1].At).Seconds() >= reactSeconds {
		past = past[1:]
	}
	if len(past) == 0 {
		past = []RateAt{{At: now, Rate: a.Fast}}
	}
	if first := past[0]; now.Sub(first.At).Seconds() >= 0.8*reactSeconds && first.Rate > 0 {
		if rise := a.Fast/first.Rate - 1; rise > a.Rise {
			a.Rise += riseWeight * (rise - a.Rise)
		} else {
			a.Rise *= 1 - smoothing(elapsed.Seconds(), riseForgotten.Seconds())
		}
		a.Rise = min(mostRise, max(leastRise, a.Rise))
	}
	a.Past = append(append(make([]RateAt, 0, len(past)+1), past...), RateAt{At: now, Rate: a.Fast})
}

// smoothing is the weight of what is new after a time, for a time constant.
func smoothing(seconds, constant float64) float64 { return 1 - math.Exp(-max(0, seconds)/constant) }

// planned is the rate to be ready for: what there is, and where a clear trend leads within a reaction time.
func (a *Arrivals) planned() float64 {
	trend := 0.0
	if gap := a.Fast - a.Slow; gap > noise*a.Deviation {
		trend = gap / (slowSeconds - fastSeconds)
	}
	return max(a.Fast+trend*reactSeconds, a.Slow)
}

const (
	leastUtilisation = 0.5
	mostUtilisation  = 0.9
)

// utilisation to plan for: what may arrive before help is ready costs headroom, what the objective forgives earns it.
func (a *Arrivals) utilisation(objective time.Duration) float64 {
	return min(mostUtilisation, max(leastUtilisation, (1+objective.Seconds()/reactSeconds)/(1+a.Rise)))
}
