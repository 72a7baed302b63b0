// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// ready is the first condition that is not True, in the order in which a user fixes them. ScalingActive comes last,
// since it is False if an earlier one is.
func (o outcome) ready(target, known, applied metav1.Condition, active *metav1.Condition) metav1.Condition {
	parts := []metav1.Condition{target, known, applied}
	if active != nil {
		parts = append(parts, *active)
	}
	for _, part := range parts {
		if part.Status != metav1.ConditionTrue {
			part.Type = v1alpha1.ConditionReady
			return part
		}
	}
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonScaling}
	switch {
	case o.Policy.Spec.Mode == v1alpha1.ModeRecommend:
		c.Reason, c.Message = v1alpha1.ReasonRecommending, "mode is Recommend: decisions are shown and not carried out"
	case active != nil && active.Reason == v1alpha1.ReasonScaledToZero:
		c.Reason, c.Message = v1alpha1.ReasonScaledToZero, active.Message
	case o.decision != nil && o.decision.Hold != nil:
		// No numbers: each change of a condition is a write.
		c.Message = "the replicas are held (" + o.decision.Hold.Reason + "), see status.decision.hold"
	case o.decision != nil && o.decision.Replicas != *o.Target.Replicas:
		c.Message = "the target is about to follow a new decision"
	default:
		c.Message = "the target follows the decisions"
	}
	return c
}

// objectiveMet is not evaluated yet.
func objectiveMet() metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionObjectiveMet, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotEvaluated,
		Message: "the latency objective is not evaluated",
	}
}

// scalingLimited names the bound that keeps the replicas from what the load needs. Its messages have no numbers of the
// load: each change of a condition is a write.
func (o outcome) scalingLimited() metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionScalingLimited, Status: metav1.ConditionTrue}
	d := o.decision
	switch {
	case d == nil:
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonNotChecked
		c.Message = "there is no decision"
	case o.Reading == nil:
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonNotChecked
		c.Message = "the backlog must be known first"
	case d.Hold != nil && externalLimit(d.Hold.Reason):
		c.Reason, c.Message = v1alpha1.ReasonExternalLimit, "more replicas would process no more messages ("+
			d.Hold.Reason+"), see status.decision.hold"
	case d.CappedBy == policy.CappedByMax:
		c.Reason, c.Message = v1alpha1.ReasonTooManyReplicas, "the load needs more replicas than maxReplicas"
	case d.CappedBy == policy.CappedByMin:
		c.Reason, c.Message = v1alpha1.ReasonTooFewReplicas, "the load needs fewer replicas than minReplicas"
	case d.CappedBy == policy.CappedByPartitions:
		c.Reason = v1alpha1.ReasonTooFewPartitions
		c.Message = "the load needs more replicas than the Failover subscription has partitions for"
	default:
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonDesiredWithinRange
		c.Message = "no bound limits the desired replicas"
	}
	return c
}

// externalLimit says that the limit of a hold lies outside the Function.
func externalLimit(hold string) bool {
	switch hold {
	case policy.HoldIneffective, policy.HoldThrottled, policy.HoldBlocked:
		return true
	default:
		return false
	}
}
