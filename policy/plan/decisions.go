// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// Because is the equation of a decision, with the hold and the bound that changed its result.
func Because(decision *v1alpha1.Decision) string {
	if decision == nil {
		return ""
	}
	text := decision.Equation
	if decision.Hold != nil {
		if text != "" {
			text += "; "
		}
		text += decision.Hold.Message
	}
	if decision.CappedBy != "" {
		text += " (capped by " + decision.CappedBy + ")"
	}
	return text
}
