// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Floor is backlog that replicas cannot process: the backlog that remains while replicas are idle. It consists of held
// messages, messages that always fail, markers, and errors of counters. KEDA's Kafka scaler has a similar rule,
// excludePersistentLag.
type Floor struct {
	// Messages of the backlog that no replica can process.
	Messages float64 `json:"messages"`
	// Idle is true after an idle poll, and Least is the smallest backlog of consecutive ones.
	Idle  bool    `json:"idling"`
	Least float64 `json:"least"`
	// Tried is the number of idle replicas that were increased to see whether more process the backlog; 0 for none.
	Tried float64 `json:"tried"`
}

const (
	// idleShare of the coverage: replicas that are less busy would process more messages if there were any.
	idleShare = 0.7
	// A backlog is work if replicas finish more than arrives, by shrinkingShare, and drain it within shrinkingSeconds.
	// Messages in the receive queue of one replica keep it busy while all others are idle.
	shrinkingShare, shrinkingSeconds = 0.3, 600
)

// learn learns from a poll. The floor shrinks by what replicas finish beyond the arrivals.
func (f Floor) learn(in Input, capacity *LearnedCapacity, elapsed time.Duration) Floor {
	ready, err := in.Reading.Ready.Value()
	if err != nil {
		return f
	}
	after := Floor{Messages: min(f.Messages, ready), Tried: f.Tried}
	least, err := in.Reading.LeastReady.Value()
	switch idle, known := idling(in, capacity); {
	case !known:
	case !idle || shrinking(in.Reading, ready):
		after.Messages = max(0, after.Messages-drained(in.Reading)*elapsed.Seconds())
	case err != nil:
	case after.untried(in, capacity):
		after.Tried = max(f.Tried, in.consumers())
	default:
		after.Idle, after.Least = true, least
		if f.Idle {
			after.Least = min(least, f.Least)
			after.Messages, after.Tried = min(ready, max(0, after.Least-inCalls(in))), 0
		}
	}
	return after
}

// untried reports whether idle replicas have more backlog than the floor that may be work: until the coverage is known,
// replicas that look idle may be busy. Only if more of them are idle too is it certain.
func (f Floor) untried(in Input, capacity *LearnedCapacity) bool {
	consumers := in.consumers()
	seconds, err := wait(in, f, capacity).Value()
	late := err == nil && seconds > LatencyObjective(in.Spec).Seconds()
	return capacity.coverageUnknown() && late &&
		(f.Tried == 0 || consumers < significantShare*f.Tried) && consumers < float64(in.Spec.MaxReplicas)
}

// consumers is the number of consumers, in replicas; 0 if unknown.
func (in Input) consumers() float64 {
	consumers, _ := in.Reading.Consumers.Value()
	return consumers
}

// inCalls is the number of unacknowledged messages that replicas may be processing: one each, or those that they say.
func inCalls(in Input) float64 {
	calls := in.consumers() * float64(in.perReplica())
	if inFlight, err := in.Reading.Instances.InFlight.LowerBound(); err == nil {
		calls = inFlight
	}
	if unacked, err := in.Reading.Unacked.Value(); err == nil {
		calls = min(calls, unacked)
	}
	return calls
}

func drained(r backlog.Reading) float64 {
	arriving, processed := flow(r)
	return max(0, processed-arriving)
}

// shrinking reports whether replicas drain the backlog although they are idle on average: a few of them hold it.
func shrinking(r backlog.Reading, ready float64) bool {
	arriving, _ := flow(r)
	return drained(r) > max(shrinkingShare*arriving, ready/shrinkingSeconds)
}

// keepsUp reports whether replicas process what arrives and the backlog is in receive queues: new replicas have nothing
// to add. If there are messages to dispatch, a limit just above the arrivals is possible.
func keepsUp(in Input, arrivals *Arrivals, processed float64) bool {
	undispatched, err := in.Reading.LeastUndispatched.Value()
	return err == nil && undispatched < max(1, processed*pendingWork.Seconds()) &&
		arrivals != nil && processed >= arrivals.Rate
}

// idling reports whether all replicas consume, keep up, and could process more. It is unknown for a Failover
// subscription, where one replica may have all the work.
func idling(in Input, capacity *LearnedCapacity) (idle, known bool) {
	busy, timed := busyShare(in.Reading)
	consumers, err := in.Reading.Consumers.Value()
	if err != nil || !timed || !in.Reading.SteadyConsumers || consumers < float64(in.CurrentReplicas) || consumers < 1 ||
		in.Reading.Type == backlog.Failover || fallsBehind(in.Reading) {
		return false, false
	}
	return busy < idleShare*capacity.coverage(), true
}

func (f Floor) work(ready float64) float64 { return max(0, ready-f.Messages) }

// failedFor is how long failed messages may take to be redelivered: twice the default delay of a negative
// acknowledgement.
const failedFor = 2 * time.Minute

// failingShare: if this share of the attempts ends with an exception, more replicas do not help.
const failingShare = 0.5

func failing(in Input) bool {
	failed, err := in.Reading.Instances.UserExceptionRate.LowerBound()
	processed, unknown := in.Reading.Instances.ProcessRate.LowerBound() // of the same instances
	return err == nil && unknown == nil && failed > 0 && failed > failingShare*(failed+processed)
}
