// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Service is how one reading compares with the latency objective; the zero value is unknown.
type Service struct {
	Objective Objective
	// At is when the reading was measured.
	At time.Time
	// Failing is true if most calls end with an exception.
	Failing bool
	// Oldest is when the oldest message was published, if it has missed the objective and a message published now would
	// not; zero otherwise.
	Oldest time.Time
}

// Objective is how messages compare with the latency objective.
type Objective int

// Results of the comparison.
const (
	// ObjectiveUnknown: the reading is not sufficient.
	ObjectiveUnknown Objective = iota
	// ObjectiveMet: messages wait no longer than the objective.
	ObjectiveMet
	// ObjectiveMissed: a message published now would wait longer, or the oldest one has.
	ObjectiveMissed
	// ObjectiveStalled: there is a backlog and no message is processed. Messages miss the objective once this lasts for
	// longer than the objective.
	ObjectiveStalled
)

// LatencyObjective is latencyObjective of the spec, or its default where no API server has set it.
func LatencyObjective(spec v1alpha1.AutoscalingPolicySpec) time.Duration {
	if spec.LatencyObjective.Duration <= 0 {
		return defaultLatencyObjective
	}
	return spec.LatencyObjective.Duration
}

// service compares a reading with the objective. Backlog that no replica can process delays no other message, so only
// the age of its oldest message counts.
func service(in Input, state State) Service {
	objective := LatencyObjective(in.Spec).Seconds()
	found := Service{At: in.Reading.At, Failing: failing(in)}
	wait := workWait(in, state)
	seconds, err := wait.LowerBound()
	age, aged := oldestDue(in.Reading)
	switch late := aged && age > objective; {
	case err == nil && seconds > objective:
		found.Objective = ObjectiveMissed
	case late:
		found.Objective, found.At = ObjectiveMissed, in.Reading.OldestAt
		if err == nil {
			found.Oldest = found.At.Add(-time.Duration(age * float64(time.Second)))
		}
	case stalls(in, state.Floor):
		found.Objective = ObjectiveStalled
	case wait.Known():
		found.Objective = ObjectiveMet
	}
	return found
}

// workWait is how long messages wait for the replicas that consume now, without backlog that no replica can process.
func workWait(in Input, state State) backlog.Measurement {
	ready, err := in.Reading.Ready.LowerBound()
	if err != nil {
		return backlog.Unknown(err)
	}
	return waitOf(state.Floor.work(in, ready), in.Reading, state.Capacity)
}

// oldestDue is the age of the oldest message in seconds. It is unknown with delayed messages: their age is no delay.
func oldestDue(r backlog.Reading) (seconds float64, known bool) {
	delayed, err := r.Delayed.Value()
	seconds, unknown := r.OldestAge.Value()
	return seconds, err == nil && delayed == 0 && unknown == nil
}

// stalls reports whether there was work throughout the window and none was processed.
func stalls(in Input, floor Floor) bool {
	least, err := in.Reading.LeastReady.Value()
	processed, unknown := in.Reading.ProcessRate.Value()
	return err == nil && unknown == nil && processed <= 0 && least-floor.messages(in) >= 1
}

// missesObjective reports whether the backlog takes longer than the objective, which justifies the cost of a change.
func (s State) missesObjective(in Input) bool {
	seconds, err := workWait(in, s).LowerBound()
	return err == nil && seconds > LatencyObjective(in.Spec).Seconds()
}
