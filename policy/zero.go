// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Zero is the state of scaling to zero and back, for policies with minReplicas 0; IdleSince is for all.
type Zero struct {
	// IdleSince is when the Function became idle: no arrivals, no processing, no backlog. Zero while it is not idle.
	IdleSince time.Time `json:"idle"`
	// IdleAt is when it was last seen idle. It counts as idle for freshFor after that, unless a reading shows work: a new
	// topic, or one that was loaded again, is counted exactly at the next poll.
	IdleAt time.Time `json:"idleAt"`
	// Worked is true if replicas have processed messages since they woke.
	Worked bool `json:"worked"`
	// Since is when the last replica was removed.
	Since time.Time `json:"since"`
	// Backoff is the pause after Since if replicas woke for messages that they did not process; 0 for none.
	Backoff time.Duration `json:"pause"`
}

const (
	// wakeWindow is the time over which the messages that woke a Function count as arrivals.
	wakeWindow = 5 * time.Second
	// Each wake that processed nothing doubles the pause before the next one.
	firstBackoff, longestBackoff = 30 * time.Second, time.Hour
	// retryAfter is the minimum time before replicas retry messages that they did not process: the cause may be fixed.
	retryAfter = 10 * time.Minute
	// firstWake replicas at most wake while the capacity is unknown and the objective is too short to learn it from one
	// first: as many as a HorizontalPodAutoscaler adds at once by default. messagesToLearn are enough to learn from one
	// replica: calls of 10 ms are busy for a tenth of a poll.
	firstWake, messagesToLearn = 4, 100
)

func (z Zero) learn(in Input, before State) Zero {
	arrives, quiet := flows(in.Reading.PublishRate)
	works, rests := flows(in.Reading.ProcessRate)
	if arrives {
		z.Backoff = 0
	}
	if in.CurrentReplicas == 0 {
		return z.atZero(in)
	}
	z.Worked, z.Since = z.Worked || works, time.Time{}
	return z.learnIdle(in, before, quiet && rests, arrives || works)
}

// learnIdle learns whether the Function is idle. quiet means that all rates are 0, busy that one is above 0.
func (z Zero) learnIdle(in Input, before State, quiet, busy bool) Zero {
	unseen := in.Now.Sub(z.IdleAt) > in.freshFor() || in.Reading.At.Sub(before.ReadAt) > in.freshFor()
	contradicted := contradiction(in) != ""
	switch idle := quiet && empty(in, before.Floor) && !contradicted; {
	case idle && (z.IdleSince.IsZero() || unseen):
		z.IdleSince, z.IdleAt = in.Now, in.Now
	case idle:
		z.IdleAt = in.Now
	case unseen || busy || contradicted || hasBacklog(in, before.Floor):
		z.IdleSince = time.Time{}
	}
	return z
}

// flows reports whether a rate is certainly above 0, and whether it is 0.
func flows(rate backlog.Measurement) (some, none bool) {
	if least, err := rate.LowerBound(); err == nil && least > 0 {
		return true, false
	}
	_, err := rate.Value()
	return false, err == nil
}

func hasBacklog(in Input, floor Floor) bool {
	total, err := in.Reading.Total.LowerBound()
	return err == nil && total > floor.Messages
}

func (z Zero) atZero(in Input) Zero {
	switch removed := z.Since.IsZero(); {
	case removed && !z.IdleSince.IsZero() && !z.Worked: // the last replica processed nothing
		z.Since, z.Backoff = in.Now, min(longestBackoff, max(firstBackoff, 2*z.Backoff))
	case removed:
		z.Since, z.Backoff = in.Now, 0
	}
	z.Worked, z.IdleSince = false, time.Time{}
	return z
}

// pausedUntil is the end of the pause; in the past for none. The bound is for a checkpoint from elsewhere.
func (z Zero) pausedUntil() time.Time { return z.Since.Add(min(z.Backoff, longestBackoff)) }

// empty reports whether a fresh, complete and exact count shows nothing left to process: nothing delayed, and nothing
// held by a replica that may hang.
func empty(in Input, floor Floor) bool {
	total, err := in.Reading.Total.Value()
	old := in.Now.Sub(in.Reading.At) > in.freshFor()
	if err != nil || in.Reading.Trouble != nil || in.Reading.ExactAt.IsZero() || old {
		return false
	}
	unacked, err := in.Reading.Unacked.Value()
	if err != nil {
		unacked = 0 // Exclusive and Failover do not count them
	}
	return total == 0 || (total <= floor.Messages && unacked == 0)
}

func (z Zero) readyForZero(in Input) bool {
	return in.minReplicas() == 0 && !z.IdleSince.IsZero() && in.Now.Sub(z.IdleSince) >= Cooldown(in.Spec) &&
		z.IdleAt.Equal(in.Now)
}

// tryIdle tries what keeps the last replica of an idle Function.
func (z Zero) tryIdle(in Input, before trial) trial {
	if in.minReplicas() > 0 || in.CurrentReplicas > 1 {
		return before
	}
	ready, err := in.Reading.Ready.LowerBound()
	partial := unknownBy(in.Reading.Coverage.Err()).when(err != nil || ready < 1)
	if partial.Message == "" && z.IdleSince.IsZero() {
		return before // it is not idle
	}
	return before.try(partial, Hold{HoldStabilizing, fmt.Sprintf("idle for %s: scales to zero after %s",
		in.Now.Sub(z.IdleSince).Truncate(time.Second), Cooldown(in.Spec))})
}

const noBacklog = "no backlog = 0"

// wake returns the replicas that the winner of the strategies recommends at zero, at least one; 0 while none wakes.
func (z Zero) wake(in Input, floor Floor, winner recommendation) (int32, trial) {
	ready, err := in.Reading.Ready.LowerBound()
	unknown, backoff := unknownBy(err), Hold{Reason: HoldWakeBackoff}
	waiting, until := max(ready, in.Reading.Unconfirmed), z.pausedUntil()
	if again := z.Since.Add(retryAfter); waiting-floor.Messages < 1 && again.After(until) {
		until = again
	}
	switch {
	case err != nil:
	case waiting < 1:
		if unknown = unknownBy(in.Reading.Coverage.Err()); unknown.Message == "" {
			return 0, trial{equation: noBacklog}
		}
	case in.Now.Before(until):
		backoff.Message = fmt.Sprintf("%s messages were not processed when replicas last ran: next attempt in %s",
			short(waiting), until.Sub(in.Now).Truncate(time.Second))
	}
	tried := trial{}.try(unknown, backoff)
	switch {
	case tried.held != nil && err == nil && ready < 1 && in.Reading.Coverage.Complete():
		tried.equation = noBacklog
		return 0, tried
	case tried.held != nil:
		return 0, tried
	case ready < 1:
		tried.equation = fmt.Sprintf("woken from zero: %s unconfirmed backlog = 1", short(in.Reading.Unconfirmed))
		return 1, tried // the second answer sizes the rest
	case winner.replicas < 1 || ready-floor.Messages < 1:
		tried.equation = fmt.Sprintf("woken from zero: %s backlog = 1", short(ready))
		return 1, tried
	default:
		tried.equation = "woken from zero: " + winner.equation
		return winner.replicas, tried
	}
}
