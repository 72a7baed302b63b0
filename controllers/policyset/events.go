// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policyset

import (
	"fmt"
	"strings"

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

const (
	// maxNote is the maximum size of an event's note in bytes.
	maxNote = 1024
	// maxNamed is how many policies an event names.
	maxNamed = 10
)

func (r *Reconciler) record(policySet *v1alpha1.AutoscalingPolicySet, events []report.Event) {
	for _, e := range events {
		r.config.Recorder.Eventf(policySet, nil, e.Type, e.Reason, e.Action, "%s", plan.Shorten(e.Note, maxNote))
	}
}

// written are the names of policies that one reconcile created and deleted.
type written struct {
	created, deleted []string
}

func newWritten(actions set.Actions, applied, deleted []bool) written {
	var w written
	for i, planned := range actions.Apply {
		if applied[i] && planned.Create {
			w.created = append(w.created, *planned.Policy.Name)
		}
	}
	for i, p := range actions.Delete {
		if deleted[i] {
			w.deleted = append(w.deleted, p.Name)
		}
	}
	return w
}

// events are one for all created and one for all deleted policies: there may be 1000.
func (w written) events() []report.Event {
	var all []report.Event
	for _, some := range []struct {
		reason, verb string
		names        []string
	}{{reasonCreated, "Create", w.created}, {reasonDeleted, "Delete", w.deleted}} {
		if len(some.names) > 0 {
			all = append(all, report.Event{
				Type: corev1.EventTypeNormal, Reason: some.reason, Action: some.verb + some.names[0], Note: named(some.names),
			})
		}
	}
	return all
}

func named(names []string) string {
	text := fmt.Sprintf("%d: %s", len(names), strings.Join(names[:min(maxNamed, len(names))], ", "))
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
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
	case is.Status == metav1.ConditionTrue:
		return []report.Event{{
			Type: corev1.EventTypeNormal, Reason: is.Reason, Action: "CheckReady", Note: is.Message,
		}}
	default:
		return []report.Event{{
			Type: corev1.EventTypeWarning, Reason: is.Reason, Action: "CheckReady", Note: is.Message,
		}}
	}
}
