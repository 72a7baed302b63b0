// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/forecast"
)

// foresight is what the pulses of a state mean for a decision.
type foresight struct {
	in    Input
	state State
	// expected is the next pulse, also while one runs; nil if none is expected.
	expected *forecast.Next
}

func foresee(in Input, state State) foresight {
	f := foresight{in: in, state: state}
	if next, expected := state.Pulses.Next(in.Now); expected && f.mode() != v1alpha1.ForecastOff {
		f.expected = &next
	}
	return f
}

func (f foresight) mode() v1alpha1.ForecastMode {
	if spec := f.in.Spec.Forecast; spec != nil && spec.Mode != "" {
		return spec.Mode
	}
	return v1alpha1.ForecastAuto // the default of the CRD
}

// learn learns from a reading.
func (f foresight) learn() forecast.Pulses {
	before, rate := f.state.Pulses, newestRate(f.in.Reading)
	switch {
	case f.mode() == v1alpha1.ForecastOff:
		return forecast.Pulses{}
	case f.state.Arrivals == nil || rate.Window == 0:
		return before
	}
	// After a gap it is unknown when a pulse began or ended. Readings without any rate are one.
	rate.Window = max(rate.Window, rate.At.Sub(f.state.Arrivals.At))
	return before.Learn(rate, f.state.Arrivals.deviation(before.Base, rate.Window))
}

// newestRate is the rate of the newest window; without a window if it is unknown.
func newestRate(r backlog.Reading) forecast.Rate {
	rate, err := r.LatestPublishRate.Value()
	if err != nil {
		return forecast.Rate{}
	}
	return forecast.Rate{PerSecond: rate, Window: r.LatestWindow, At: r.At}
}

// acts reports whether pulses change decisions. Only strategy Capacity orders replicas for them, and Failover is sized
// by partition.
func (f foresight) acts() bool {
	capacity := func(s v1alpha1.Strategy) bool { return s.Type == v1alpha1.StrategyCapacity }
	return f.mode() == v1alpha1.ForecastAuto && f.in.Reading.Coverage.Complete() &&
		f.in.Reading.Type != backlog.Failover && slices.ContainsFunc(strategies(f.in.Spec), capacity)
}

// next is the pulse that is expected next; nil if none is, or while one runs.
func (f foresight) next() *forecast.Next {
	if f.state.Pulses.Running() {
		return nil
	}
	return f.expected
}

// replaces is from 0 to 1: how much of the headroom for pulses is not needed, since they are foreseen.
func (f foresight) replaces() float64 {
	if f.expected == nil || !f.acts() {
		return 0
	}
	return f.expected.Weight()
}

// ahead is the next pulse, and when replicas have to be ordered for it; nil if none counts. Some wait is within the
// objective.
func (f foresight) ahead() (next *forecast.Next, order time.Time) {
	next = f.next()
	if next == nil || !f.acts() {
		return nil, time.Time{}
	}
	return next, next.Begin.Add(-f.early(next.Spread))
}

// early is how long before a rise replicas are ordered for it.
func (f foresight) early(spread time.Duration) time.Duration {
	return fromSeconds(f.state.Start.seconds() + (f.in.Sync() + f.in.PollInterval/2 + spread).Seconds() -
		waitShare*LatencyObjective(f.in.Spec).Seconds())
}

// rate is what to have replicas for, in messages per second, since more is about to arrive; 0 if that is not known.
func (f foresight) rate() float64 { return max(f.pulse(), f.upstream()) }

// upstream is the rate that the Functions before this one will publish, once replicas have to be ordered for it.
func (f foresight) upstream() float64 {
	rate := f.state.Upstream.expected(f.in.Upstream)
	if rate == 0 || !f.acts() || f.in.Now.Before(f.in.Upstream.From.Add(-f.early(0))) {
		return 0
	}
	return rate
}

func (f foresight) pulse() float64 {
	next, order := f.ahead()
	if next == nil || f.in.Now.Before(order) || f.in.Now.Sub(next.Begin) > next.Spread+2*f.in.PollInterval {
		return 0
	}
	return next.PerSecond
}

// untilPulse keeps or removes replicas that are not needed before the next pulse: it is worth their change if they save
// more than its price, or if that was paid already. It returns false if no pulse is expected, if behavior.scaleUp may
// not give them back in time, or if more were needed within the stabilization window.
func (f foresight) untilPulse(wanted, paid int32, price float64) (target int32, early string, known bool) {
	in, capacity, limits := f.in, f.state.Capacity, scaleUpRules(f.in.Spec)
	if ScaleUpDisabled(in.Spec) || len(limits.Policies) > 0 || upWindow(limits) > 0 {
		return 0, "", false
	}
	next, order := f.ahead()
	if next == nil || capacity == nil || in.Now.After(next.Begin) || f.needed(wanted) {
		return 0, "", false
	}
	saved := float64(f.state.Decided.from(in.CurrentReplicas)-wanted) * max(0, order.Sub(in.Now).Seconds())
	if saved >= price {
		return wanted, "", true
	}
	target = min(in.CurrentReplicas, max(paid, replicasFor(next.PerSecond/(maxUtilization*capacity.planned()))))
	if target == in.CurrentReplicas && target > wanted {
		early = fmt.Sprintf(
			"%s messages/s are expected at %s: fewer than %d replicas would save %s replica-seconds, and have to save %s",
			short(next.PerSecond), next.Begin.UTC().Format(time.DateTime), target, short(saved), short(price))
	}
	return target, early, true
}

// needed reports whether more replicas than wanted were needed within the stabilization window.
func (f foresight) needed(wanted int32) bool {
	return slices.ContainsFunc(f.state.Recommendations, func(r ReplicasAt) bool {
		return r.Replicas > wanted && f.in.Now.Sub(r.At) < downWindow(f.in)
	})
}
