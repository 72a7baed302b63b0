// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// maxPast is how many decisions are remembered: what happened lately, for a person who comes when it is over.
const maxPast = 5

// withDecision is the list of past decisions with one more, if that asks for another number of replicas. The first
// counts from the replicas that run.
func withDecision(before v1alpha1.AutoscalingPolicyStatus, to int32, current *int32,
	decision *v1alpha1.Decision,
) []v1alpha1.PastDecision {
	from := before.DesiredReplicas
	if from == nil {
		from = current
	}
	if from == nil || *from == to || decision == nil {
		return before.LastDecisions
	}
	newest := v1alpha1.PastDecision{Time: decision.Time, From: *from, To: to, Why: Shorten(Because(decision), maxText)}
	all := slices.Insert(slices.Clone(before.LastDecisions), 0, newest)
	return all[:min(len(all), maxPast)]
}

// Because is the equation of a decision and what kept it from being followed.
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
