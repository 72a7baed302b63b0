// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// restAfter is how long a Function must be idle before it is at rest.
	restAfter = 10 * time.Minute
	// restObjective is the minimum objective: polls of topics at rest add less than a tenth of it to the wait.
	restObjective = 10 * backlog.RestInterval
	// quickObjective is above the objectives of which a usual poll takes more than a sixth.
	quickObjective = time.Minute
	// quickTopics bounds the requests for one policy.
	quickTopics = 100
)

// wakes reports whether the first message is to wake replicas.
func (z Zero) wakes(in Input) bool {
	return in.CurrentReplicas == 0 && in.minReplicas() == 0 && in.Frozen == nil && !in.Now.Before(z.pausedUntil()) &&
		!ScaleUpDisabled(in.Spec)
}

// Pace is how often topics need to be polled. They are at rest if the Function has been idle for long, a replica runs
// that processes the first messages, none can be removed, and the objective is long. Without a replica messages wait
// for a poll, unless the broker pushes: with a short objective it comes quickly.
func (z Zero) Pace(in Input) backlog.Pace {
	known := in.Unknown == nil && in.Reading.Coverage.Complete()
	switch {
	case known && z.wakes(in) && LatencyObjective(in.Spec) < quickObjective &&
		in.Reading.Coverage.Topics <= quickTopics:
		return backlog.Quick
	case z.wakes(in):
		return backlog.Waking
	case !known:
		return backlog.Usual
	case !z.IdleSince.IsZero() && in.Now.Sub(z.IdleSince) >= restAfter && LatencyObjective(in.Spec) >= restObjective &&
		in.CurrentReplicas > 0 && in.CurrentReplicas == in.minReplicas():
		return backlog.AtRest
	}
	return backlog.Usual
}
