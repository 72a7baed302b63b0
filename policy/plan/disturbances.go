// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// scalesWithoutRestart warns of targets that restart their replicas when the number changes. The controller still
// scales them, in fewer and larger steps.
func scalesWithoutRestart(o Observed) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionScalesWithoutRestart}
	target := o.Target
	switch {
	case target == nil || (o.Violation != nil && o.Violation.Condition == v1alpha1.ConditionTargetFound):
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.ReasonNotChecked, targetNotFoundYet
	case len(target.Disturbances) == 0:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonUndisturbed
		c.Message = "a change of the number of replicas restarts none that run"
	default:
		var messages []string
		for _, d := range target.Disturbances {
			messages = append(messages, d.Message)
		}
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, target.Disturbances[0].Reason, Shorten(strings.Join(messages,
			"; "), maxMessage)
	}
	return c
}

// Restarts says that each change of the replicas is known to restart those that run.
func (t *Target) Restarts() bool {
	for _, d := range t.Disturbances {
		if d.Restarts {
			return true
		}
	}
	return false
}
