// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Conditions of a ScaledObject.
//
// Source: KEDA 2.21, apis/keda/v1alpha1/condition_types.go.
const (
	kedaReady    = "Ready"
	kedaFallback = "Fallback"
	kedaActive   = "Active"
)

// byKEDA is AutoscalerApplied where KEDA scales the target, or starts or stops to; nil otherwise.
func byKEDA(o plan.Observed) *metav1.Condition {
	if v := plan.KEDARemoval(o); v != nil {
		c := &metav1.Condition{Type: v.Condition, Status: metav1.ConditionUnknown, Reason: v.Reason, Message: v.Message}
		if v.Reason == v1alpha1.ReasonScaledObjectStays {
			c.Status = metav1.ConditionFalse
		}
		return c
	}
	if o.Actuator.Type != v1alpha1.ActuatorKEDA {
		return nil
	}
	c := scaledObjectApplied(o)
	return &c
}

func scaledObjectApplied(o plan.Observed) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionAutoscalerApplied, Status: metav1.ConditionUnknown,
		Reason: v1alpha1.ReasonPending,
	}
	name := plan.AutoscalerName(o.Policy.Name)
	switch {
	case plan.SwitchedOff(o) != nil:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonSwitchedOff
		c.Message = "there is no ScaledObject while replicas are 0, since KEDA would raise them"
	case !plan.MayHaveScaledObject(o):
		c.Message = "KEDA would bring the replicas within bounds, so the ScaledObject is created when they may change: " +
			o.Target.Frozen.Message
	case o.OwnScaledObject() != nil && o.KEDAAutoscaler != nil &&
		!plan.ToleranceHonoured(o.KEDAAutoscaler):
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonToleranceUnsupported, toleranceIsDropped
	case o.OwnScaledObject() != nil:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonApplied
		c.Message = "ScaledObject " + name + " is up to date"
	case o.Unknown != nil:
		c.Message = "the ScaledObject is created after the first decision"
	default:
		c.Message = "the ScaledObject is created when HorizontalPodAutoscaler " + name + " is deleted"
	}
	return c
}

// kedaScales reports whether KEDA scales, in KEDA's words. The target has replicas.
func kedaScales(o plan.Observed) metav1.Condition {
	live, hpa := o.OwnScaledObject(), o.KEDAAutoscaler
	c := metav1.Condition{
		Type: v1alpha1.ConditionScalingActive, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPending,
		Message: "KEDA has not reconciled the ScaledObject yet",
	}
	if live == nil {
		return c
	}
	ready, fallback := meta.FindStatusCondition(live.Status.Conditions,
		kedaReady), meta.FindStatusCondition(live.Status.Conditions, kedaFallback)
	switch {
	case ready != nil && ready.Status == metav1.ConditionFalse:
		c.Status, c.Reason = metav1.ConditionFalse, cmp.Or(ready.Reason, v1alpha1.ReasonPending)
		c.Message = fmt.Sprintf("KEDA reports for ScaledObject %s: %s", live.Name, ready.Message)
	case fallback != nil && fallback.Status == metav1.ConditionTrue:
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonFallback
		c.Message = fmt.Sprintf("KEDA gets no answer from the scaler and holds the replicas (fallback), see the events of "+
			"ScaledObject %s: %s", live.Name, fallback.Message)
	case hpa != nil:
		c = mirrored(o.Policy, c, hpa.Status.Conditions)
	case ready != nil && ready.Status == metav1.ConditionTrue:
		c.Message = "KEDA has not created its HorizontalPodAutoscaler yet"
	}
	if active := meta.FindStatusCondition(live.Status.Conditions, kedaActive); c.Status == metav1.ConditionTrue &&
		active != nil && active.Status == metav1.ConditionFalse {
		c.Message = fmt.Sprintf("KEDA is about to remove the last replica (%s): %s", active.Reason, active.Message)
	}
	return c
}

// paused reports that the user paused KEDA for the target.
func paused(live *plan.LiveScaledObject) *metav1.Condition {
	return &metav1.Condition{
		Type: v1alpha1.ConditionScalingActive, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonScaledObjectPaused,
		Message: fmt.Sprintf("ScaledObject %s is paused by an annotation (autoscaling.keda.sh/paused or paused-replicas), "+
			"which switches scaling off: remove it to resume", live.Name),
	}
}
