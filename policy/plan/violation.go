// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Violation is something that a user must fix before the controller scales the target. Until then it writes nothing.
type Violation struct { //nolint:errname // it is first of all a result, and an error where Go wants one
	// Condition that becomes False.
	Condition string
	Reason    string
	// Message names the fix.
	Message string
}

// TargetProblem is why the target cannot be scaled.
func TargetProblem(reason, format string, args ...any) *Violation {
	return &Violation{v1alpha1.ConditionTargetFound, reason, fmt.Sprintf(format, args...)}
}

// ScalingProblem is why the policy cannot scale its target, such as another autoscaler.
func ScalingProblem(reason, format string, args ...any) *Violation {
	return &Violation{v1alpha1.ConditionAutoscalerApplied, reason, fmt.Sprintf(format, args...)}
}

// Error implements error.
func (p *Violation) Error() string { return p.Message }

// Unwrap says that waiting does not help: the user has to correct it.
func (p *Violation) Unwrap() error { return backlog.ErrUnsupported }
