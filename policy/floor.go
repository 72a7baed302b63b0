// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"

// Floor is backlog that is no work: messages that are held, that fail for ever, markers, and counts that drifted. It is what
// waits while replicas are not busy and keep up. KEDA's Kafka scaler has a like rule, excludePersistentLag.
type Floor struct {
	// Messages of the backlog that no replica works on.
	Messages float64 `json:"messages,omitempty"`
	// Idle polls in a row.
	Idle int32 `json:"idle,omitempty"`
}

const (
	// idleShare of the coverage: replicas that are less busy than that would take more work if there were any.
	idleShare = 0.7
	idlePolls = 2
)

// learn takes in a poll. How busy replicas are tells nothing of a Failover subscription, where one may have all the work.
func (f Floor) learn(in Input, capacity *LearnedCapacity) Floor {
	ready, err := in.Reading.Ready.Value()
	if err != nil {
		return f
	}
	after := Floor{Messages: min(f.Messages, ready)}
	busy, timed := busyShare(in.Reading)
	consumers, err := in.Reading.Consumers.Value()
	if err != nil || !timed || !in.Reading.SteadyConsumers || consumers < float64(in.CurrentReplicas) || consumers < 1 ||
		in.Reading.Type == backlog.Failover {
		return after
	}
	if coverage := capacity.coverage(); busy < idleShare*coverage && !fallsBehind(in.Reading) {
		after.Idle = min(idlePolls, f.Idle+1)
	}
	if after.Idle >= idlePolls {
		after.Messages = ready
		// The time that replicas were busy is that of a whole window: what came at its end was not there when they were idle.
		if least, err := in.Reading.LeastReady.Value(); err == nil {
			after.Messages = min(ready, least)
		}
	}
	return after
}

func (f Floor) messages(in Input) float64 {
	if in.without(PartFloor) {
		return 0
	}
	return f.Messages
}

// failingShare of the attempts that end with an exception is too much for more replicas to help.
const failingShare = 0.5

// failing says that the function mostly throws.
func failing(in Input) bool {
	failed, err := in.Reading.Instances.UserExceptionRate.Value()
	processed, unknown := in.Reading.Instances.ProcessRate.Value()
	return err == nil && unknown == nil && failed > 0 && failed > failingShare*(failed+processed) && !in.without(PartExceptions)
}
