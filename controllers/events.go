// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// reasonDesiredReplicasChanged is the reason of the event about another number of replicas.
const reasonDesiredReplicasChanged = "DesiredReplicasChanged"

// reasonSubscriptionChanged is the reason of the event about a policy that names another subscription.
const reasonSubscriptionChanged = "SubscriptionChanged"

// maxNote is the most bytes that the API takes as the text of an event.
const maxNote = 1024

// policyEvent is an event to be recorded about a policy.
type policyEvent struct {
	// kind is Normal or Warning.
	kind   string
	reason string
	// action tells events apart: the recorder folds events of equal kind, reason and action into a series within six
	// minutes and keeps the text of the first.
	action string
	note   string
}

// desiredReplicasChanged reports a new decision.
func desiredReplicasChanged(from, to int32, decision *v1alpha1.Decision) policyEvent {
	note := fmt.Sprintf("%d -> %d", from, to)
	if why := plan.Because(decision); why != "" {
		note += ": " + why
	}
	return policyEvent{
		kind: corev1.EventTypeNormal, reason: reasonDesiredReplicasChanged,
		action: fmt.Sprintf("Scale%dTo%d", from, to), note: plan.Shorten(note, maxNote),
	}
}

// becameFalse reports that a condition turned False, or stayed False for another reason.
func becameFalse(c *metav1.Condition) policyEvent {
	return policyEvent{
		kind: corev1.EventTypeWarning, reason: c.Reason, action: "Check" + c.Type, note: plan.Shorten(c.Message, maxNote),
	}
}

// recovered reports that a condition is True again.
func recovered(from, c *metav1.Condition) policyEvent {
	return policyEvent{
		kind: corev1.EventTypeNormal, reason: c.Reason, action: "Recover" + c.Type,
		note: plan.Shorten(fmt.Sprintf("%s is True again, after %s: %s", c.Type, from.Reason, c.Message), maxNote),
	}
}

// reportForgotten says what became of what was learned before: why it cannot be read, or that it was of another
// subscription.
func (r *PolicyReconciler) reportForgotten(ctx context.Context, observed plan.Observed, unread error, forgotten bool) {
	if unread != nil {
		log.FromContext(ctx).Info("parts of status.checkpoint left out", "why", unread.Error())
	}
	if forgotten {
		const note = "spec.subscription names another subscription, so what was learned of the last one is forgotten"
		r.config.Recorder.Eventf(observed.Policy, nil, corev1.EventTypeNormal, reasonSubscriptionChanged, "Forget", "%s",
			note)
		log.FromContext(ctx).Info("subscription changed, what was learned is forgotten", "subscription",
			observed.Target.Subscription.Name)
	}
}

// newEvents are the events that the step from one status to the next is worth.
func newEvents(before, after v1alpha1.AutoscalingPolicyStatus) []policyEvent {
	var all []policyEvent
	if from, to, changed := desiredChange(before, after); changed {
		all = append(all, desiredReplicasChanged(from, to, after.Decision))
	}
	for _, name := range []string{
		v1alpha1.ConditionReady, v1alpha1.ConditionSubscriptionVerified,
		v1alpha1.ConditionScalesWithoutRestart,
	} {
		is, was := meta.FindStatusCondition(after.Conditions, name), meta.FindStatusCondition(before.Conditions, name)
		wasFalse := was != nil && was.Status == metav1.ConditionFalse
		switch {
		case is == nil:
		case is.Status == metav1.ConditionFalse && (!wasFalse || was.Reason != is.Reason):
			all = append(all, becameFalse(is))
		case is.Status == metav1.ConditionTrue && wasFalse && name == v1alpha1.ConditionReady:
			all = append(all, recovered(was, is))
		}
	}
	return all
}

// desiredChange says from which number to which the decision went. A first decision counts from the replicas that run.
func desiredChange(before, after v1alpha1.AutoscalingPolicyStatus) (from, to int32, changed bool) {
	origin := before.DesiredReplicas
	if origin == nil {
		origin = after.SpecReplicas
	}
	if origin == nil || after.DesiredReplicas == nil {
		return 0, 0, false
	}
	return *origin, *after.DesiredReplicas, *origin != *after.DesiredReplicas
}
