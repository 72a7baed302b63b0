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

// ageLooks times freshFor is more than the time between two looks at the age.
const ageLooks = 2

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
	waiting := wait(in, state.Floor, state.Capacity)
	seconds, err := waiting.LowerBound()
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
	case waiting.Known():
		found.Objective = ObjectiveMet
	}
	return found
}

// oldestDue is the age of the oldest message in seconds. It is unknown with delayed messages: their age is no delay.
func oldestDue(r backlog.Reading) (seconds float64, known bool) {
	delayed, err := r.Delayed.Value()
	seconds, unknown := r.OldestAge.Value()
	return seconds, err == nil && delayed == 0 && unknown == nil
}

// Oldest is the oldest message that is due.
type Oldest struct {
	// At is when it was looked at, and Published its time then; zero for none.
	At        time.Time `json:"at"`
	Published time.Time `json:"published"`
	// Stuck is true if an earlier look found the same message.
	Stuck bool `json:"stuck"`
}

// learn learns from a reading, which looks at the age less often than at the rest.
func (o Oldest) learn(r backlog.Reading) Oldest {
	age, known := oldestDue(r)
	if !known || !r.OldestAt.After(o.At) {
		return o
	}
	published := r.OldestAt.Add(-fromSeconds(age))
	return Oldest{At: r.OldestAt, Published: published, Stuck: published.Sub(o.Published).Abs() < time.Second}
}

// late reports whether messages have missed the objective, and not only one that is stuck.
func (o Oldest) late(in Input) bool {
	return !o.Stuck && !o.Published.IsZero() && in.Now.Sub(o.At) <= ageLooks*in.freshFor() &&
		o.At.Sub(o.Published) > LatencyObjective(in.Spec)
}

// stalls reports whether there was work throughout the window and none was processed.
func stalls(in Input, floor Floor) bool {
	least, err := in.Reading.LeastReady.Value()
	processed, unknown := in.Reading.ProcessRate.Value()
	return err == nil && unknown == nil && processed <= 0 && least-floor.Messages >= 1
}

// wait is how long the ready messages take with the replicas that consume now, without backlog that no replica can
// process. It is a lower bound if some topics are unknown. Without a learned capacity the process rate counts.
func wait(in Input, floor Floor, capacity *LearnedCapacity) backlog.Measurement {
	ready, err := in.Reading.Ready.LowerBound()
	if err != nil {
		return backlog.Unknown(err)
	}
	messages, r := floor.work(ready), in.Reading
	processed, err := r.ProcessRate.Value()
	// Each replica consumes all topics, so the consumers of the known topics are all consumers.
	if consumers, unknown := r.Consumers.LowerBound(); unknown == nil && consumers > 0 && capacity != nil {
		processed, err = consumers*capacity.MessagesPerSecond, nil
	}
	seconds := 0.0
	switch {
	case messages < 1:
	case err != nil:
		return backlog.Unknown(err)
	case processed <= 0:
		return backlog.Unknown(backlog.ErrNoRate) // nothing is processed: no finite answer
	default:
		seconds = messages / processed
	}
	if !r.Coverage.Complete() {
		return backlog.AtLeast(seconds, r.Coverage.Err())
	}
	return backlog.Known(seconds)
}

// drainShare of the objective, and spareShare of what the reaction leaves of it, is the time to drain the backlog, but
// at least drainStarts of a start: with a reaction as long as the objective, messages published meanwhile are near it.
const drainShare, spareShare, drainStarts = 0.4, 0.35, 0.3

func drainTime(objective, start, react float64) float64 {
	return max(drainShare*objective+spareShare*max(0, objective-react), drainStarts*start)
}
