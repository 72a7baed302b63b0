// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"
	"time"
)

// Score is the result of a run.
type Score struct {
	// Messages that arrived and can be processed, and Late ones: finished, or still there, later than the objective.
	Messages, Late float64
	// Finished messages.
	Finished float64
	// ReplicaSeconds from the scale write on.
	ReplicaSeconds float64
	// ViolationSeconds in which the oldest message was older than the objective.
	ViolationSeconds int
	// Actions are changes of the number of replicas, and Flaps scale-ups within ten minutes of a scale-down.
	Actions, Flaps int
	// Ended counts removed replicas and ended containers, and Redelivered the messages that these held.
	Ended       int
	Redelivered float64
	// Trace has the replicas of every second, Oldest the age of the oldest message, and Backlog the messages that wait.
	Trace, Oldest, Backlog []int32

	from, lastDown, lastLimited int
}

// flapWindow in seconds.
const flapWindow = 600

func (s *Score) action(second, before, after int) {
	if second < s.from {
		return
	}
	s.Actions++
	switch {
	case after < before:
		s.lastDown = second
	case s.lastDown > 0 && second-s.lastDown <= flapWindow:
		s.Flaps++
	}
}

// finished counts messages that arrived at a second and are processed now.
func (s *Score) finished(at, now int, count float64, objective time.Duration) {
	if at < s.from {
		return
	}
	s.Finished += count
	if float64(now-at) > objective.Seconds() {
		s.Late += count
	}
}

// arrived counts the messages of a second, except those that always fail.
func (s *Score) arrived(second int, counts []float64, poison float64) {
	if second < s.from {
		return
	}
	for _, count := range counts {
		s.Messages += count * (1 - poison)
	}
}

// account ends a second of the system.
func (s *Score) account(system *System) {
	replicas, age := len(system.set.replicas), 0
	if at, ok := system.subscription.oldest(system.second); ok {
		age = system.second - at
	}
	if system.second >= s.from {
		s.ReplicaSeconds += float64(replicas)
		if float64(age) > system.scenario.Objective.Seconds() {
			s.ViolationSeconds++
		}
	}
	s.Trace = append(s.Trace, int32(replicas)) //nolint:gosec // bounded by maxReplicas
	s.Oldest = append(s.Oldest, int32(age))
	s.Backlog = append(s.Backlog, int32(min(system.subscription.queued(), math.MaxInt32)))
}

// LateShare of the messages, from 0 to 1.
func (s Score) LateShare() float64 {
	if s.Messages == 0 {
		return 0
	}
	return s.Late / s.Messages
}

// Settling after a step of the load at the given second, before the next at until: how long until replicas stay within
// one of their final number and nothing is late; NaN if they do not settle.
func (s Score) Settling(step, until int, objective time.Duration) (seconds float64) {
	until = min(until, len(s.Trace))
	if until <= step {
		return math.NaN()
	}
	end := s.Trace[until-1]
	settled := until
	for second := until - 1; second >= step; second-- {
		if distance := s.Trace[second] - end; distance > 1 || distance < -1 ||
			float64(s.Oldest[second]) > objective.Seconds() {
			break
		}
		settled = second
	}
	if settled == until {
		return math.NaN()
	}
	return float64(settled - step)
}
