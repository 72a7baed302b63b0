// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// kedaFinalizerTimeout is how long KEDA may take to finalize a deleted ScaledObject, usually well under a second.
const kedaFinalizerTimeout = time.Minute

// Conditions of a ScaledObject.
//
// Source: KEDA 2.21, apis/keda/v1alpha1/condition_types.go.
const (
	kedaReady    = "Ready"
	kedaFallback = "Fallback"
	kedaActive   = "Active"
)

// kedaRemoval reports the removal of a ScaledObject that is not wanted, or that blocks the next one; nil for none.
func kedaRemoval(o Observed) *metav1.Condition {
	live := o.ownScaledObject()
	c := &metav1.Condition{
		Type: v1alpha1.ConditionAutoscalerApplied, Status: metav1.ConditionUnknown,
		Reason: v1alpha1.ReasonPending,
	}
	switch wanted := o.Actuator.Type == v1alpha1.ActuatorKEDA && mayHaveScaledObject(o); {
	case live != nil && live.DeletionTimestamp != nil && o.Now.Sub(live.DeletionTimestamp.Time) > kedaFinalizerTimeout:
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonScaledObjectStays
		c.Message = fmt.Sprintf("ScaledObject %s was deleted at %s and still exists, so KEDA may still scale the target: "+
			"check that KEDA's operator runs, or if KEDA is uninstalled remove its finalizer finalizer.keda.sh",
			live.Name, live.DeletionTimestamp.UTC().Format(time.TimeOnly))
	case live != nil && (live.DeletionTimestamp != nil || !wanted):
		c.Message = fmt.Sprintf("waiting until KEDA finalizes ScaledObject %s", live.Name)
	case o.KEDAAutoscaler != nil && (live == nil || !wanted):
		c.Message = fmt.Sprintf(
			"waiting until KEDA's HorizontalPodAutoscaler %s is deleted, which follows its ScaledObject; "+
				"if KEDA is uninstalled and it stays, delete it", o.KEDAAutoscaler.Name)
	default:
		return nil
	}
	return c
}

// stuckScaledObject reports a ScaledObject that KEDA does not finalize; nil for none.
func stuckScaledObject(o Observed) *Violation {
	if c := kedaRemoval(o); c != nil && c.Reason == v1alpha1.ReasonScaledObjectStays {
		return &Violation{Condition: c.Type, Reason: c.Reason, Message: c.Message}
	}
	return nil
}

// byKEDA is AutoscalerApplied where KEDA scales the target, or starts or stops to; nil otherwise.
func byKEDA(o Observed) *metav1.Condition {
	if c := kedaRemoval(o); c != nil {
		return c
	}
	if o.Actuator.Type != v1alpha1.ActuatorKEDA {
		return nil
	}
	c := scaledObjectApplied(o)
	return &c
}

func scaledObjectApplied(o Observed) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionAutoscalerApplied, Status: metav1.ConditionUnknown,
		Reason: v1alpha1.ReasonPending,
	}
	name := AutoscalerName(o.Policy.Name)
	switch {
	case SwitchedOff(o):
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonSwitchedOff
		c.Message = "there is no ScaledObject while replicas are 0, since KEDA would raise them"
	case !mayHaveScaledObject(o):
		c.Message = "KEDA would bring the replicas within bounds, so the ScaledObject is created when they may change: " +
			o.Target.Frozen.Message
	case o.ownScaledObject() != nil && o.KEDAAutoscaler != nil &&
		!ToleranceHonoured(o.KEDAAutoscaler):
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonToleranceUnsupported, toleranceIsDropped
	case o.ownScaledObject() != nil:
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
func kedaScales(o Observed) metav1.Condition {
	live, hpa := o.ownScaledObject(), o.KEDAAutoscaler
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
		c = mirrored(o, c, hpa.Status.Conditions)
	case ready != nil && ready.Status == metav1.ConditionTrue:
		c.Message = "KEDA has not created its HorizontalPodAutoscaler yet"
	}
	if active := meta.FindStatusCondition(live.Status.Conditions, kedaActive); c.Status == metav1.ConditionTrue &&
		active != nil && active.Status == metav1.ConditionFalse {
		c.Message = fmt.Sprintf("KEDA is about to remove the last replica (%s): %s", active.Reason, active.Message)
	}
	return c
}

// paused reports that the user paused KEDA for the target; nil if not.
func paused(live *LiveScaledObject) *metav1.Condition {
	return &metav1.Condition{
		Type: v1alpha1.ConditionScalingActive, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonScaledObjectPaused,
		Message: fmt.Sprintf("ScaledObject %s is paused by an annotation (autoscaling.keda.sh/paused or paused-replicas), "+
			"which switches scaling off: remove it to resume", live.Name),
	}
}
