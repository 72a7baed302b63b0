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
)

// AtRest reports whether topics may be polled every backlog.RestInterval only: the Function has been idle for long, a
// replica runs that processes the first messages, none can be removed, and the objective is long. Without a replica
// messages wait for a poll, so such a target is never at rest.
func (z Zero) AtRest(in Input) bool {
	return in.Unknown == nil && in.Reading.Coverage.Complete() &&
		!z.IdleSince.IsZero() && in.Now.Sub(z.IdleSince) >= restAfter &&
		in.CurrentReplicas > 0 && in.CurrentReplicas == in.minReplicas() && LatencyObjective(in.Spec) >= restObjective
}
