// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// decided returns the replicas that were decided for the policy and when what they rest on was measured.
//
// A status of an older generation counts: its target is the same, since scaleTargetRef cannot change, and the number
// is brought within the present bounds, so that a change of maxReplicas acts at once instead of freezing the
// autoscaler until the next decision. The mode does not matter: in Recommend nobody of ours follows the number.
func decided(p *v1alpha1.AutoscalingPolicy) (replicas int32, measuredAt time.Time, err error) {
	if p.Spec.TargetSelector != nil {
		return 0, time.Time{}, newFault(errBadRequest, "%s", policy.FleetHasNoMetric(p))
	}
	status := p.Status
	if known := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionBacklogKnown); known != nil &&
		known.Status == metav1.ConditionFalse {
		return 0, time.Time{}, newFault(errUnknown, "%s", messageOf(known))
	}
	if status.DesiredReplicas == nil {
		return 0, time.Time{}, newFault(errUnknown, "no decision yet: %s", undecidedBecause(p))
	}
	switch {
	case status.Signals != nil && !status.Signals.MeasuredAt.IsZero():
		measuredAt = status.Signals.MeasuredAt.Time
	case status.Decision != nil && !status.Decision.Time.IsZero():
		measuredAt = status.Decision.Time.Time
	default:
		return 0, time.Time{}, newFault(errUnknown, "no decision yet: the status does not say when its signals were measured")
	}
	return within(*status.DesiredReplicas, p.Spec), measuredAt, nil
}

// within brings replicas within the bounds of the spec. An autoscaler that may not go to zero has a bound of its own.
func within(replicas int32, spec v1alpha1.AutoscalingPolicySpec) int32 {
	least := int32(1)
	if spec.MinReplicas != nil {
		least = *spec.MinReplicas
	}
	return max(0, min(max(replicas, least), spec.MaxReplicas))
}

// undecidedBecause says in the words of the status why there is no decision.
func undecidedBecause(p *v1alpha1.AutoscalingPolicy) string {
	if p.Spec.Mode == v1alpha1.ModeOff {
		return "mode is Off, so nothing is decided: set it to Auto or Recommend"
	}
	for _, name := range []string{v1alpha1.ConditionTargetFound, v1alpha1.ConditionReady} {
		if c := meta.FindStatusCondition(p.Status.Conditions, name); c != nil && c.Status == metav1.ConditionFalse {
			return messageOf(c)
		}
	}
	if d := p.Status.Decision; d != nil && d.Hold != nil && d.Hold.Reason == policy.HoldSwitchedOff {
		return d.Hold.Message // Recommend is Ready even so
	}
	return "the policy is new, the first one takes two answers of Pulsar"
}

// messageOf a condition, or its reason when it has no message.
func messageOf(c *metav1.Condition) string {
	if c.Message != "" {
		return c.Message
	}
	return c.Type + " is " + string(c.Status) + ": " + c.Reason
}
