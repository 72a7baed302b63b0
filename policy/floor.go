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
	Messages float64 `json:"messages,omitempty"`
	// Idle counts consecutive idle polls, and Least is their smallest backlog.
	Idle  int32   `json:"idle,omitempty"`
	Least float64 `json:"least,omitempty"`
}

const (
	// idleShare of the coverage: replicas that are less busy would process more messages if there were any.
	idleShare = 0.7
	idlePolls = 2
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
	after := Floor{Messages: min(f.Messages, ready)}
	least, err := in.Reading.LeastReady.Value()
	switch idle, known := idling(in, capacity); {
	case !known:
	case idle && capacity.coverageUnknown() && late(in, ready, capacity):
		after.Messages = 0
	case !idle || shrinking(in):
		after.Messages = max(0, after.Messages-drained(in)*elapsed.Seconds())
	case err == nil:
		after.Idle, after.Least = min(idlePolls, f.Idle+1), least
		if f.Idle > 0 {
			after.Least = min(least, f.Least)
		}
		if after.Idle >= idlePolls {
			after.Messages = min(ready, after.Least)
		}
	}
	return after
}

// late reports whether this number of messages would wait for longer than the objective.
func late(in Input, messages float64, capacity *LearnedCapacity) bool {
	seconds, err := waitOf(messages, in.Reading, capacity).Value()
	return err == nil && seconds > LatencyObjective(in.Spec).Seconds()
}

// drained is the rate at which replicas reduce the backlog, in messages per second.
func drained(in Input) float64 {
	processed, err := processRate(in.Reading)
	arriving, unknown := in.Reading.PublishRate.Value()
	if err != nil || unknown != nil {
		return 0
	}
	return max(0, processed-arriving)
}

// shrinking reports whether replicas drain the backlog although they are idle on average: a few of them hold it.
func shrinking(in Input) bool {
	ready, err := in.Reading.Ready.Value()
	arriving, unknown := in.Reading.PublishRate.Value()
	return err == nil && unknown == nil && drained(in) > max(shrinkingShare*arriving, ready/shrinkingSeconds)
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

// work is the part of the messages that replicas can process.
func (f Floor) work(in Input, ready float64) float64 { return max(0, ready-f.messages(in)) }

func (f Floor) messages(in Input) float64 {
	if in.without(PartFloor) {
		return 0
	}
	return f.Messages
}

// failedFor is how long failed messages may take to be redelivered: twice the default delay of a negative
// acknowledgement.
const failedFor = 2 * time.Minute

// failingShare: if this share of the attempts ends with an exception, more replicas do not help.
const failingShare = 0.5

// failing reports whether most attempts of the function end with an exception.
func failing(in Input) bool {
	failed, err := in.Reading.Instances.UserExceptionRate.Value()
	processed, unknown := in.Reading.Instances.ProcessRate.Value()
	return err == nil && unknown == nil && failed > 0 && failed > failingShare*(failed+processed) &&
		!in.without(PartExceptions)
}
