// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// Result is what became of the actions of a plan.
type Result struct {
	// Autoscaler and ScaledObject are ours as they are after the writes; nil when they do not exist.
	Autoscaler   *autoscalingv2.HorizontalPodAutoscaler
	ScaledObject *LiveScaledObject
	// Violation is what stands in the way still: that of the plan, or why the API server refuses our autoscaler; nil
	// when nothing does.
	Violation *Violation
	// Refused says that the API server refused our autoscaler in this reconcile.
	Refused bool
	// ApplyFailed is why it is not known whether our autoscaler, or another one that is suspended or restored, is as it
	// should be: a write of it failed and is retried.
	ApplyFailed error
	// ScaleFailed is why the target's replicas were not written; nil when they were, or need not be.
	ScaleFailed error
	// Suspended and Restored say that this was done to another autoscaler.
	Suspended, Restored bool
}

// Unwritten is the result before the first write.
func Unwritten(o Observed, actions Actions) Result {
	return Result{Autoscaler: o.Autoscaler, ScaledObject: o.ScaledObject, Violation: actions.Violation}
}
