// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// Result is the result of the actions.
type Result struct {
	// Autoscaler and ScaledObject are ours after the writes; nil if they do not exist.
	Autoscaler   *autoscalingv2.HorizontalPodAutoscaler
	ScaledObject *LiveScaledObject
	// Violation is that of the plan, or why the API server refuses our autoscaler; nil for none.
	Violation *Violation
	// Refused says that the API server refused our autoscaler in this reconcile.
	Refused bool
	// ApplyFailed is why the state of our autoscaler, or of a suspended or restored one, is unknown: a write failed and is
	// retried.
	ApplyFailed error
	// ScaleFailed is why the target's replicas were not written; nil if they were, or need not be.
	ScaleFailed error
	// Suspended and Restored say that another autoscaler was suspended or restored.
	Suspended, Restored bool
}

// Unwritten is the result before the first write.
func Unwritten(o Observed, actions Actions) Result {
	return Result{Autoscaler: o.Autoscaler, ScaledObject: o.ScaledObject, Violation: actions.Violation}
}
