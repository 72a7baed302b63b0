// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Zero is what the way to no replicas and back rests on, for policies with minReplicas 0.
type Zero struct {
	// IdleSince is since when nothing arrived, nothing was done and nothing was left; zero while that is not so.
	IdleSince time.Time `json:"idle,omitzero"`
	// Worked says that something was done since replicas woke.
	Worked bool `json:"worked,omitempty"`
	// Since is when the last replica went.
	Since time.Time `json:"since,omitzero"`
	// Backoff is how long not to wake for messages that woke replicas in vain, and Until the end of it.
	Backoff time.Duration `json:"backoff,omitempty"`
	Until   time.Time     `json:"until,omitzero" state:"until"`
}

const (
	// wakeWindow is over how long the messages that woke a Function are taken to have arrived.
	wakeWindow = 5 * time.Second
	// A wake in vain doubles the pause before the next one.
	firstBackoff, longestBackoff = 30 * time.Second, time.Hour
	// Messages that no replica processed are tried again after that at the earliest: the obstacle may be gone.
	tryAgain = 10 * time.Minute
)

// learn takes in a poll.
func (z Zero) learn(in Input, before State) Zero {
	arriving, err := in.Reading.PublishRate.Value()
	arrives, quiet := err == nil && arriving > 0, err == nil && arriving == 0
	done, err := in.Reading.ProcessRate.Value()
	works, rests := err == nil && done > 0, err == nil && done == 0
	if arrives {
		z.Backoff, z.Until = 0, time.Time{}
	}
	if in.CurrentReplicas == 0 {
		return z.gone(in)
	}
	z.Worked, z.Since = z.Worked || works, time.Time{}
	unseen := in.Now.Sub(before.DecidedAt) > in.FreshFor || in.Reading.At.Sub(before.ReadAt) > in.FreshFor
	switch idle := quiet && rests && empty(in, before.Floor); {
	case !idle:
		z.IdleSince = time.Time{}
	case z.IdleSince.IsZero() || unseen:
		z.IdleSince = in.Now
	}
	return z
}

// gone is what is left of it when there are no replicas.
func (z Zero) gone(in Input) Zero {
	if !z.IdleSince.IsZero() && !z.Worked { // the last one went now, and had woken in vain
		z.Backoff = min(longestBackoff, max(firstBackoff, 2*z.Backoff))
		z.Until = in.Now.Add(z.Backoff)
	}
	if z.Since.IsZero() {
		z.Since = in.Now
	}
	z.Worked, z.IdleSince = false, time.Time{}
	return z
}

// empty says that nothing is left that could be worked on: seen fresh and whole and counted exactly, with nothing
// delayed and nothing held by a replica that may hang.
func empty(in Input, floor Floor) bool {
	total, err := in.Reading.Total.Value()
	if err != nil || in.Reading.Trouble != nil || in.Reading.ExactAt.IsZero() || in.Now.Sub(in.Reading.At) > in.FreshFor {
		return false
	}
	unacked, err := in.Reading.Unacked.Value()
	if err != nil {
		unacked = 0 // Exclusive and Failover do not count them
	}
	return total == 0 || (total <= floor.messages(in) && unacked == 0)
}

// due says that the last replica may go.
func (z Zero) due(in Input) bool {
	return in.least() == 0 && !z.IdleSince.IsZero() && in.Now.Sub(z.IdleSince) >= Cooldown(in.Spec)
}

// idling says why the last replica stays although nothing arrives.
func (z Zero) idling(in Input) *Hold {
	if in.least() > 0 || z.IdleSince.IsZero() || in.CurrentReplicas > 1 {
		return nil
	}
	return &Hold{Reason: HoldIdling, Message: fmt.Sprintf("nothing has arrived for %s, the last replica goes after %s",
		in.Now.Sub(z.IdleSince).Truncate(time.Second), Cooldown(in.Spec))}
}

// zeroEquation is the equation of a decision about zero, which follows from no strategy; empty for others.
func (s State) zeroEquation(in Input, replicas int32) (equation string) {
	ready, err := in.Reading.Ready.Value()
	switch work := ready - s.Floor.messages(in); {
	case in.Frozen != nil || in.least() > 0 || err != nil:
		return ""
	case replicas == 0 && in.CurrentReplicas > 0:
		return fmt.Sprintf("nothing has arrived, been done or been left for %s = 0",
			in.Now.Sub(s.Zero.IdleSince).Truncate(time.Second))
	case replicas == 0 && ready < 1:
		return "nothing waits = 0"
	case replicas == 0 || in.CurrentReplicas > 0:
		return ""
	default:
		if _, equation = s.wakes(in, work); equation != "" {
			return equation
		}
		return fmt.Sprintf("woken from zero: %s waiting, and what a replica can do is not known = %d", short(ready), replicas)
	}
}

// wake says how many replicas to begin with again: enough for what arrives and what waits, not one and then more.
func (z Zero) wake(in Input, state State) (int32, *Hold) {
	ready, err := in.Reading.Ready.Value()
	if err != nil {
		return 0, &Hold{Reason: HoldUnknown, Message: err.Error()}
	}
	work := ready - state.Floor.messages(in)
	until := z.Until
	if again := z.Since.Add(max(tryAgain, z.Backoff)); work < 1 && again.After(until) {
		until = again
	}
	switch {
	case ready < 1:
		return 0, nil
	case in.Now.Before(until):
		return 0, &Hold{
			Reason: HoldWakeBackoff,
			Message: fmt.Sprintf("%s messages wait that were not processed when replicas were there: next try in %s",
				short(ready), until.Sub(in.Now).Truncate(time.Second)),
		}
	}
	needed, _ := state.wakes(in, work)
	return max(1, recommend(needed, "").withinPartitions(in).replicas), nil
}

// wakesUnknown says that what waits for sure is enough to wake one replica, by the rules of wake.
func (s State) wakesUnknown(in Input) bool {
	if in.ReadyAtLeast < 1 {
		return false
	}
	in.Reading.Ready = backlog.Known(in.ReadyAtLeast)
	replicas, _ := s.Zero.wake(in, s)
	return replicas > 0
}

// wakes is how many replicas the work needs that waits at zero, by what one can do and by the thresholds that the
// policy has, and the equation of it; empty where neither says.
func (s State) wakes(in Input, work float64) (replicas int32, equation string) {
	if work < 1 {
		return 0, ""
	}
	if s.Capacity != nil && s.Arrivals != nil {
		var needed float64
		needed, equation = s.wakesByCapacity(in, work)
		replicas = replicasFor(needed)
	}
	for _, strategy := range strategies(in.Spec) {
		if strategy.Type != v1alpha1.StrategyBacklogPerReplica && strategy.Type != v1alpha1.StrategyRatePerReplica {
			continue
		}
		if one := evaluateStrategy(strategy, in, s); !one.unknown && one.replicas > replicas {
			replicas, equation = one.replicas, "woken from zero: "+one.equation
		}
	}
	return replicas, equation
}

// wakesByCapacity is how many replicas the work needs by what one can do.
func (s State) wakesByCapacity(in Input, work float64) (needed float64, equation string) {
	arriving, drain := math.Min(s.Arrivals.Fast, work/wakeWindow.Seconds()), drainShare*latencyObjective(in.Spec).Seconds()
	needed = (arriving + work/drain) / s.Capacity.MessagesPerSecond
	return needed,
		fmt.Sprintf("woken from zero: (%s/s arriving + %s waiting / %.0fs) / %s/s per replica = %.2f", short(arriving),
			short(work), drain,
			short(s.Capacity.MessagesPerSecond), needed)
}
