// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Floor is backlog that is no work: messages that are held, that fail for ever, markers, and counts that drifted. It is
// what waited all the while that replicas were not busy. KEDA's Kafka scaler has a like rule, excludePersistentLag.
type Floor struct {
	// Messages of the backlog that no replica works on.
	Messages float64 `json:"messages,omitempty"`
	// Idle polls in a row, and the Least that waited through them.
	Idle  int32   `json:"idle,omitempty"`
	Least float64 `json:"least,omitempty"`
}

const (
	// idleShare of the coverage: replicas that are less busy than that would take more work if there were any.
	idleShare = 0.7
	idlePolls = 2
	// A backlog is work after all where more is finished than arrives, by shrinkingShare, and it is gone within
	// shrinkingSeconds at that: what one replica holds in its receive queue is done by that one alone, at rest with all
	// others. Without it the pool was scaled down to those that held it, and what arrived had to wait behind it.
	shrinkingShare, shrinkingSeconds = 0.3, 600
)

// learn takes in a poll. What is finished beyond what arrives was work after all, so it shrinks by that.
func (f Floor) learn(in Input, capacity *LearnedCapacity, elapsed time.Duration) Floor {
	ready, err := in.Reading.Ready.Value()
	if err != nil {
		return f
	}
	after := Floor{Messages: min(f.Messages, ready)}
	least, err := in.Reading.LeastReady.Value()
	switch idle, known := idling(in, capacity); {
	case known && idle && shrinking(in):
		after.Messages = max(0, after.Messages-drained(in)*elapsed.Seconds())
	case known && idle && err == nil:
		after.Idle, after.Least = min(idlePolls, f.Idle+1), least
		if f.Idle > 0 {
			after.Least = min(least, f.Least)
		}
		if after.Idle >= idlePolls {
			after.Messages = min(ready, after.Least)
		}
	case known && !idle:
		after.Messages = max(0, after.Messages-drained(in)*elapsed.Seconds())
	}
	return after
}

// drained is how much more is finished than arrives, in messages per second.
func drained(in Input) float64 {
	processed, err := processRate(in.Reading)
	arriving, unknown := in.Reading.PublishRate.Value()
	if err != nil || unknown != nil {
		return 0
	}
	return max(0, processed-arriving)
}

// shrinking says that the backlog is worked off although replicas rest on the whole: a few of them hold it.
func shrinking(in Input) bool {
	ready, err := in.Reading.Ready.Value()
	arriving, unknown := in.Reading.PublishRate.Value()
	return err == nil && unknown == nil && drained(in) > max(shrinkingShare*arriving, ready/shrinkingSeconds)
}

// idling says whether all replicas are there, keep up, and would take more work. How busy they are tells nothing of a
// Failover subscription, where one may have all the work.
func idling(in Input, capacity *LearnedCapacity) (idle, known bool) {
	busy, timed := busyShare(in.Reading)
	consumers, err := in.Reading.Consumers.Value()
	if err != nil || !timed || !in.Reading.SteadyConsumers || consumers < float64(in.CurrentReplicas) || consumers < 1 ||
		in.Reading.Type == backlog.Failover || fallsBehind(in.Reading) {
		return false, false
	}
	return busy < idleShare*capacity.coverage(), true
}

func (f Floor) messages(in Input) float64 {
	if in.without(PartFloor) {
		return 0
	}
	return f.Messages
}

// failedFor is how long what failed may come back: the redelivery delay of a negative acknowledgement, twice.
const failedFor = 2 * time.Minute

// failingShare of the attempts that end with an exception is too much for more replicas to help.
const failingShare = 0.5

// failing says that the function mostly throws.
func failing(in Input) bool {
	failed, err := in.Reading.Instances.UserExceptionRate.Value()
	processed, unknown := in.Reading.Instances.ProcessRate.Value()
	return err == nil && unknown == nil && failed > 0 && failed > failingShare*(failed+processed) &&
		!in.without(PartExceptions)
}
