// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// raise is a scale-up decision; zero for none.
type raise struct {
	decidedAt time.Time
	replicas  float64
	// took is the time until the replicas ran; nil while fewer do.
	took *time.Duration
}

// Actuated returns the time from a decision until its replicas ran, and by which actuator, if they began to run since
// the previous record.
func (r *Record) Actuated() (took time.Duration, by string, done bool) {
	if r.raise.took == nil {
		return 0, "", false
	}
	return *r.raise.took, r.actuator, true
}

// actuate returns the raise to track after the next record: the last scale-up decision, until its replicas run or
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

// runs reports whether at least that many replicas are known to run.
func runs(running backlog.Measurement, replicas float64) bool {
	value, err := running.Value()
	return err == nil && value >= replicas
}
