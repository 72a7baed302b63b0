// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// raise is a decision for more replicas; zero for none.
type raise struct {
	decidedAt time.Time
	replicas  float64
	// took is how long it was until as many ran; nil while fewer do.
	took *time.Duration
}

// Actuated is how long it took until the replicas of a decision ran, and by which actuator, if that is so since the
// record before.
func (r *Record) Actuated() (took time.Duration, by string, done bool) {
	if r.raise.took == nil {
		return 0, "", false
	}
	return *r.raise.took, r.actuator, true
}

// actuate is the raise that is under way after the next record: the last decision for more replicas, until they run or
// another decision replaces it.
func (r *Record) actuate(next *Record) raise {
	desired, undecided := next.desired.Value()
	if r == nil || undecided != nil || next.actuator == none {
		return raise{}
	}
	under := r.raise
	if before, err := r.desired.Value(); under.took != nil || err != nil || before != desired {
		under = raise{}
		if err == nil && desired > before && !runs(next.running, desired) {
			under = raise{decidedAt: next.decidedAt, replicas: desired}
		}
	}
	if !under.decidedAt.IsZero() && runs(next.running, under.replicas) {
		took := next.totals.at.Sub(under.decidedAt)
		under.took = &took
	}
	return under
}

// runs says that so many replicas are known to run.
func runs(running backlog.Measurement, replicas float64) bool {
	value, err := running.Value()
	return err == nil && value >= replicas
}
