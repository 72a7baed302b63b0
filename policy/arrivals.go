// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/forecast"
)

// Arrivals is the learned load: its rate, its noise, and how fast it rises.
type Arrivals struct {
	// At is when the last rate was measured.
	At time.Time `json:"at"`
	// Rate is the smoothed publish rate in messages per second.
	Rate float64 `json:"fast"`
	// Dispersion is the variance of a count of messages over its mean, from consecutive rates: 1 for independent messages.
	// Counted is the last rate that it was learned from.
	Dispersion float64 `json:"dispersion"`
	Counted    RateAt  `json:"counted"`
	// Rise is the relative rise to expect within a reaction time: the largest recent one. It decays over 50 min.
	Rise float64 `json:"rise"`
	// Peak is the highest recent Rate. It decays over an hour. Headroom covers a load that was seen before, not more.
	Peak float64 `json:"peak"`
	// RoseAt is the time of a step up while it enters the window of a rate. FellAt is when rates fell far below Rate:
	// another low rate, one rate window later, confirms a step down.
	RoseAt time.Time `json:"roseAt"`
	FellAt time.Time `json:"fell"`
	// Surge is a load that is not confirmed yet.
	Surge Surge `json:"surge"`
	// Past has the values of Rate within the last reaction time, oldest first.
	Past []RateAt `json:"past,omitempty"`
}

// RateAt is a rate in messages per second at a time.
type RateAt struct {
	At   time.Time `json:"t"`
	Rate float64   `json:"r"`
}

const (
	// rateSeconds is the time constant of Rate. It is longer while fewer than rateMessages arrive in it, up to rateShare
	// of the objective.
	rateSeconds, rateMessages, rateShare = 25, 10, 0.5

	riseForgotten = 50 * time.Minute
	peakForgotten = time.Hour
	// Rise starts at firstRise and stays within its bounds.
	firstRise        = 0.3
	minRise, maxRise = 0.05, 6
	// A change by this share and by this many deviations is a step. A step up counts at once. A step down needs a second
	// low rate, since a poll that missed messages looks the same.
	stepShare, stepDeviations = 0.3, 3
	// newestDeviations: the newest rate is looked at up to ten times as often, so it needs more to be a step.
	newestDeviations = 6
	// plungedShare: a rate below this share of Rate is a step down whatever the deviation, since a wrong rate that was
	// learned also raised the deviation.
	plungedShare = 0.01
	// fallConfirmed is the window of a rate: two rates that are closer share measurements.
	fallConfirmed = 8 * time.Second
	// smoothWindow is the window of a rate with about as much noise as the smoothed one.
	smoothWindow = 40 * time.Second
	// knownFor is how long arrivals count while the publish rate is unknown.
	knownFor = 10 * time.Minute
	// pastRates is how many rates of a reaction time Arrivals keeps.
	pastRates = 10
	// One rate changes the dispersion by this weight, and counts as at most so many times the learned one: a step is no
	// noise.
	dispersionWeight, dispersionLimit = 1.0 / 8, 4
)

// known is false for arrivals of long ago, which a new process has until the second answer of Pulsar.
func (a *Arrivals) known(in Input) bool {
	_, err := in.Reading.PublishRate.LowerBound()
	return a != nil && (err == nil || in.Reading.At.Sub(a.At) <= knownFor)
}

// publishRate is the publish rate of a reading. A load step enters the rate window gradually, so the newest rate
// replaces the window's rate while it is clearly higher. A lower bound counts if it exceeds the learned rate.
func (a *Arrivals) publishRate(r backlog.Reading) (forecast.Rate, error) {
	rate, err := r.PublishRate.Value()
	if err != nil {
		least, none := r.PublishRate.LowerBound()
		if none != nil || least == 0 || (a != nil && least <= a.Rate) {
			return forecast.Rate{}, err
		}
		return forecast.Rate{PerSecond: least, Window: r.Window, At: r.At}, nil
	}
	if newest := newestRate(r); a != nil && newest.Window > 0 {
		threshold := max(stepShare*rate, newestDeviations*a.deviation(rate, newest.Window))
		if !a.RoseAt.IsZero() {
			threshold = stepDeviations * a.deviation(rate, newest.Window)
		}
		if newest.PerSecond-rate > threshold {
			return newest, nil
		}
	}
	return forecast.Rate{PerSecond: rate, Window: r.Window, At: r.At}, nil
}

func (a *Arrivals) deviation(rate float64, window time.Duration) float64 {
	return math.Sqrt(max(1, a.Dispersion) * rate / max(1, window.Seconds()))
}

// learnArrivals learns from a publish rate. The latency objective and the reaction time are in seconds.
func learnArrivals(before *Arrivals, p forecast.Rate, objective, react float64) *Arrivals {
	if before == nil {
		return &Arrivals{
			At: p.At, Rate: p.PerSecond, Peak: p.PerSecond, Rise: firstRise, Dispersion: 1,
			Counted: RateAt{p.At, p.PerSecond}, Past: []RateAt{{At: p.At, Rate: p.PerSecond}},
		}
	}
	elapsed := time.Duration(0)
	if !before.At.IsZero() {
		elapsed = max(0, p.At.Sub(before.At))
	}
	seconds := elapsed.Seconds()
	after, gap := *before, p.PerSecond-before.Rate
	after.learnDispersion(p)
	// The deviation is that of the mean of both rates, since a rate of none has a deviation of 0.
	deviation := before.deviation((before.Rate+p.PerSecond)/2, p.Window)
	step := math.Abs(gap) > max(stepShare*before.Rate, stepDeviations*deviation)
	after.At = p.At
	if p.At.Sub(before.RoseAt) >= p.Window {
		after.RoseAt = time.Time{}
	}
	after.Rate += smoothing(seconds, before.smoothFor(objective)) * gap
	switch {
	case step && gap > 0:
		after.Rate, after.RoseAt = p.PerSecond, p.At
	case !before.RoseAt.IsZero(): // the last of these rates measures the whole step
		after.Rate = max(after.Rate, p.PerSecond)
	}
	plunged := p.PerSecond > 0 && p.PerSecond < plungedShare*before.Rate
	after.confirmFall(before, p, step && gap < 0 || plunged)
	after.Peak = max(after.Rate, before.Peak+smoothing(seconds, peakForgotten.Seconds())*(after.Rate-before.Peak))
	after.learnRise(p.At, elapsed, react)
	return &after
}

func (a *Arrivals) smoothFor(objective float64) float64 {
	return max(rateSeconds, min(rateShare*objective, rateMessages/max(a.Rate, minRate)))
}

// learnDispersion compares two rates of consecutive windows.
func (a *Arrivals) learnDispersion(p forecast.Rate) {
	if p.At.Sub(a.Counted.At) < p.Window {
		return
	}
	if sum := a.Counted.Rate + p.PerSecond; sum > 0 {
		gap := p.PerSecond - a.Counted.Rate
		shown := gap * gap * p.Window.Seconds() / sum
		a.Dispersion += dispersionWeight * (min(shown, dispersionLimit*max(1, a.Dispersion)) - a.Dispersion)
	}
	a.Counted = RateAt{p.At, p.PerSecond}
}

func (a *Arrivals) confirmFall(before *Arrivals, p forecast.Rate, far bool) {
	switch {
	case !far:
		a.FellAt = time.Time{}
	case before.FellAt.IsZero():
		a.FellAt = p.At
	case p.At.Sub(before.FellAt) >= fallConfirmed:
		a.Rate, a.FellAt = p.PerSecond, time.Time{}
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
		a.Past = []RateAt{{At: now, Rate: a.Rate}}
		return
	}
	if first := past[0]; now.Sub(first.At).Seconds() >= 0.8*react && first.Rate > 0 {
		rise := meanSince(past, RateAt{At: now, Rate: a.Rate})/first.Rate - 1
		left := 1 - smoothing(elapsed.Seconds(), riseForgotten.Seconds())
		a.Rise = min(maxRise, max(minRise, rise, a.Rise*left))
	}
	if now.Sub(past[len(past)-1].At).Seconds() < react/pastRates {
		a.Past = past
		return
	}
	a.Past = append(append(make([]RateAt, 0, len(past)+1), past...), RateAt{At: now, Rate: a.Rate})
}

func meanSince(past []RateAt, newest RateAt) float64 {
	sum, last := 0.0, past[0].At
	for _, r := range past[1:] {
		sum += r.Rate * r.At.Sub(last).Seconds()
		last = r.At
	}
	sum += newest.Rate * newest.At.Sub(last).Seconds()
	return sum / newest.At.Sub(past[0].At).Seconds()
}

// smoothing is the weight of a new value after an interval in seconds, for a time constant.
func smoothing(seconds, constant float64) float64 { return 1 - math.Exp(-max(0, seconds)/constant) }

const (
	// minUtilization leaves room for a sixfold rise. At 0.5, messages were late in the first minute of each pulse where
	// replicas take longer to start than the objective allows.
	minUtilization = 0.15
	maxUtilization = 0.93
)

// targetUtilization is the utilization to plan for. Headroom covers what may arrive before new replicas consume; a long
// objective needs less of it, and so do pulses that are foreseen, by the weight of their record.
func (a *Arrivals) targetUtilization(objective, react, foreseen float64) float64 {
	tolerated := 1 + objective/react
	wanted := min(maxUtilization, max(minUtilization, tolerated/(1+a.Rise*(1-foreseen))))
	if a.Peak <= 0 {
		return wanted
	}
	return max(wanted, min(maxUtilization, a.Rate/a.Peak))
}
