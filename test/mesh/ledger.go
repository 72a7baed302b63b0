// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"slices"
	"time"
)

// Sample is the state of a Function from Time on.
type Sample struct {
	Time time.Time
	// Desired is spec.replicas of the Function, 0 after its deletion.
	Desired int
	// Started counts requested replicas that have not ended, which cost money. Ready counts those that consume.
	Started, Ready int
}

// ledger is the history of one Function, a step function of time.
type ledger struct{ samples []Sample }

// note applies change to the last state, and appends a state that differs.
func (l *ledger) note(now time.Time, change func(*Sample)) {
	last := l.last()
	next := last
	change(&next)
	if next == last {
		return
	}
	next.Time = now
	l.samples = append(l.samples, next)
}

func (l *ledger) last() Sample {
	if len(l.samples) == 0 {
		return Sample{}
	}
	return l.samples[len(l.samples)-1]
}

// replicaTime is the integral of Started up to now.
func (l *ledger) replicaTime(now time.Time) time.Duration {
	var sum time.Duration
	for i, sample := range l.samples {
		until := now
		if i+1 < len(l.samples) {
			until = l.samples[i+1].Time
		}
		sum += time.Duration(sample.Started) * until.Sub(sample.Time)
	}
	return sum
}

func (l *ledger) timeline() []Sample { return slices.Clone(l.samples) }
