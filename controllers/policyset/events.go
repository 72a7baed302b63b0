// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policyset

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
)

// Reasons of events about the policies of a set.
const (
	reasonCreated = "PoliciesCreated"
	reasonDeleted = "PoliciesDeleted"
)

// maxNamed is how many policies an event names.
const maxNamed = 10

func (r *Reconciler) record(policySet *v1alpha1.AutoscalingPolicySet, events []report.Event) {
	for _, e := range events {
		r.config.Recorder.Eventf(policySet, nil, e.Type, e.Reason, e.Action, "%s", plan.Shorten(e.Note, report.MaxNote))
	}
}

// policyEvents are one for all created and one for all deleted policies: there may be 1000.
func policyEvents(done set.Actions) []report.Event {
	var created, deleted []string
	for _, planned := range done.Apply {
		if planned.Create {
			created = append(created, planned.Policy.Name)
		}
	}
	for _, p := range done.Delete {
		deleted = append(deleted, p.Name)
	}
	var all []report.Event
	for _, some := range []struct {
		reason, verb string
		names        []string
	}{{reasonCreated, "Create", created}, {reasonDeleted, "Delete", deleted}} {
		if len(some.names) > 0 {
			all = append(all, report.Event{
				Type: corev1.EventTypeNormal, Reason: some.reason, Action: some.verb + some.names[0],
				Note: fmt.Sprintf("%d: %s", len(some.names), plan.Enumerate(some.names, maxNamed, ", ")),
			})
		}
	}
	return all
}

// conditionEvents report that Ready turned False, or stayed False for another reason, or turned True again.
func conditionEvents(before, after v1alpha1.AutoscalingPolicySetStatus) []report.Event {
	was := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady)
	is := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady)
	switch {
	case is == nil || is.Status == metav1.ConditionUnknown:
		return nil
	case was != nil && was.Status == is.Status && (was.Reason == is.Reason || is.Status == metav1.ConditionTrue):
		return nil
	}
	severity := corev1.EventTypeWarning
	if is.Status == metav1.ConditionTrue {
		severity = corev1.EventTypeNormal
	}
	return []report.Event{{Type: severity, Reason: is.Reason, Action: "CheckReady", Note: is.Message}}
}
