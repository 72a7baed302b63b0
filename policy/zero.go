// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"time"
)

// Zero is what the way to no replicas and back rests on, for policies with minReplicas 0.
type Zero struct {
	// IdleSince is since when nothing arrived, nothing was done and nothing was left; zero while that is not so.
	IdleSince time.Time `json:"idle,omitzero"`
	// Worked says that something was done since replicas woke.
	Worked bool `json:"worked,omitempty"`
	// Backoff is how long not to wake for messages that woke replicas in vain, and Until the end of it.
	Backoff time.Duration `json:"backoff,omitempty"`
	Until   time.Time     `json:"until,omitzero" state:"until"`
}

const (
	// idleFor is how long nothing may happen before the last replica goes: KEDA's cooldownPeriod.
	idleFor = 5 * time.Minute
	// wakeWindow is over how long the messages that woke a Function are taken to have arrived.
	wakeWindow = 5 * time.Second
	// A wake in vain doubles the pause before the next one.
	firstBackoff, longestBackoff = 30 * time.Second, 10 * time.Minute
)

// learn takes in a poll.
func (z Zero) learn(in Input, floor Floor) Zero {
	after := z
	arriving, arrives := in.Reading.PublishRate.Value()
	done, works := in.Reading.ProcessRate.Value()
	after.Worked = z.Worked || (works == nil && done > 0 && in.CurrentReplicas > 0)
	if arrives == nil && arriving > 0 {
		after.Backoff, after.Until = 0, time.Time{}
	}
	if in.CurrentReplicas == 0 {
		if !z.IdleSince.IsZero() && !z.Worked { // it went to zero now, and had woken in vain
			after.Backoff = min(longestBackoff, max(firstBackoff, 2*z.Backoff))
			after.Until = in.Now.Add(after.Backoff)
		}
		after.Worked, after.IdleSince = false, time.Time{}
		return after
	}
	nothing := arrives == nil && arriving == 0 && works == nil && done == 0
	switch {
	case !nothing || !empty(in, floor):
		after.IdleSince = time.Time{}
	case z.IdleSince.IsZero():
		after.IdleSince = in.Now
	}
	return after
}

// empty says that nothing is left but the floor, on evidence that is good and fresh.
func empty(in Input, floor Floor) bool {
	total, err := in.Reading.Total.Value()
	return err == nil && total <= floor.messages(in) && in.Reading.Trouble == nil && in.Now.Sub(in.Reading.At) <= in.FreshFor
}

// due says that the last replica may go.
func (z Zero) due(in Input) bool {
	return in.Spec.MinReplicas == 0 && !z.IdleSince.IsZero() && in.Now.Sub(z.IdleSince) >= idleFor
}

// idling says why the last replica stays although nothing arrives.
func (z Zero) idling(in Input) *Hold {
	if in.Spec.MinReplicas > 0 || z.IdleSince.IsZero() || in.CurrentReplicas > 1 {
		return nil
	}
	return &Hold{Reason: HoldIdling, Message: fmt.Sprintf("nothing has arrived for %s, the last replica goes after %s",
		in.Now.Sub(z.IdleSince).Truncate(time.Second), idleFor)}
}

// wake says how many replicas to begin with again: enough for what arrives and what waits, not one and then more.
func (z Zero) wake(in Input, state State) (int32, *Hold) {
	ready, err := in.Reading.Ready.Value()
	if err != nil {
		return 0, &Hold{Reason: HoldUnknown, Message: err.Error()}
	}
	work := ready - state.Floor.messages(in)
	if work < 1 {
		return 0, nil
	}
	if in.Now.Before(z.Until) {
		return 0, &Hold{Reason: HoldWakeBackoff, Message: fmt.Sprintf("%s messages wait that were not processed when replicas last woke for them: next try in %s",
			short(ready), z.Until.Sub(in.Now).Truncate(time.Second))}
	}
	if state.Capacity == nil || state.Arrivals == nil {
		return 1, nil
	}
	arriving := math.Min(state.Arrivals.Fast, work/wakeWindow.Seconds())
	needed := (arriving + work/(drainShare*latencyObjective(in.Spec).Seconds())) / state.Capacity.MessagesPerSecond
	return max(1, same(replicasFor(needed), "").capped(in).replicas), nil
}
