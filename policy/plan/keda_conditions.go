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

// kedaLetsGoWithin is how long KEDA may take to let a ScaledObject go that was deleted: it takes well under a second.
const kedaLetsGoWithin = time.Minute

// Conditions of a ScaledObject.
//
// Source: KEDA 2.21, apis/keda/v1alpha1/condition_types.go.
const (
	kedaReady    = "Ready"
	kedaFallback = "Fallback"
	kedaActive   = "Active"
)

// kedaGoes says how far a ScaledObject is that is not wanted any more, or stands in the way of the next one; nil when
// there is none.
func kedaGoes(o Observed) *metav1.Condition {
	live := o.ownScaledObject()
	c := &metav1.Condition{
		Type: v1alpha1.ConditionAutoscalerApplied, Status: metav1.ConditionUnknown,
		Reason: v1alpha1.ReasonPending,
	}
	switch wanted := o.Actuator.Type == v1alpha1.ActuatorKEDA && mayHaveScaledObject(o); {
	case live != nil && live.DeletionTimestamp != nil && o.Now.Sub(live.DeletionTimestamp.Time) > kedaLetsGoWithin:
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonScaledObjectStays
		c.Message = fmt.Sprintf("ScaledObject %s was deleted at %s and is still there, so KEDA may still scale the target: "+
			"see that KEDA's operator runs, "+
			"which lets it go, or if KEDA is gone remove finalizer finalizer.keda.sh of it",
			live.Name, live.DeletionTimestamp.UTC().Format(time.TimeOnly))
	case live != nil && (live.DeletionTimestamp != nil || !wanted):
		c.Message = fmt.Sprintf("waiting until KEDA has let ScaledObject %s go", live.Name)
	case o.KEDAAutoscaler != nil && (live == nil || !wanted):
		c.Message = fmt.Sprintf(
			"waiting until HorizontalPodAutoscaler %s is gone, which KEDA made and which goes after its ScaledObject; "+
				"if KEDA is gone and it stays, delete it", o.KEDAAutoscaler.Name)
	default:
		return nil
	}
	return c
}

// kedaStays is that a ScaledObject of ours was deleted a while ago and KEDA holds it back; nil otherwise.
func kedaStays(o Observed) *Violation {
	if c := kedaGoes(o); c != nil && c.Reason == v1alpha1.ReasonScaledObjectStays {
		return &Violation{Condition: c.Type, Reason: c.Reason, Message: c.Message}
	}
	return nil
}

// byKEDA is AutoscalerApplied where KEDA scales the target, is about to, or has not stopped to; nil where it has
// nothing to do with it.
func byKEDA(o Observed) *metav1.Condition {
	if c := kedaGoes(o); c != nil {
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
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonSwitchedOff, "KEDA would set the replicas "+
			"again, so "+
			"there is no ScaledObject while they are 0"
	case !mayHaveScaledObject(o):
		c.Message = "KEDA would bring the replicas within bounds, so the ScaledObject is made when they may change: " +
			o.Target.Frozen.Message
	case o.ownScaledObject() != nil && o.KEDAAutoscaler != nil &&
		!ToleranceHonoured(o.KEDAAutoscaler):
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonToleranceUnsupported, toleranceIsDropped
	case o.ownScaledObject() != nil:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonApplied
		c.Message = "ScaledObject " + name + " is as it should be"
	case o.Unknown != nil:
		c.Message = "the ScaledObject is made when there is a first decision"
	default:
		c.Message = "the ScaledObject is made when HorizontalPodAutoscaler " + name + " is gone"
	}
	return c
}

// kedaScales says in KEDA's words whether it does. The target has replicas.
func kedaScales(o Observed) metav1.Condition {
	live, hpa := o.ownScaledObject(), o.KEDAAutoscaler
	c := metav1.Condition{
		Type: v1alpha1.ConditionScalingActive, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPending,
		Message: "KEDA has not looked at the ScaledObject yet",
	}
	if live == nil {
		return c
	}
	ready, fallback := meta.FindStatusCondition(live.Status.Conditions,
		kedaReady), meta.FindStatusCondition(live.Status.Conditions, kedaFallback)
	switch {
	case ready != nil && ready.Status == metav1.ConditionFalse:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, cmp.Or(ready.Reason,
			v1alpha1.ReasonPending), fmt.Sprintf("KEDA says of ScaledObject %s: %s", live.Name, ready.Message)
	case fallback != nil && fallback.Status == metav1.ConditionTrue:
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonFallback
		c.Message = fmt.Sprintf("KEDA gets no answer of the scaler and keeps the replicas (fallback), see the events of "+
			"ScaledObject %s: %s", live.Name, fallback.Message)
	case hpa != nil:
		c = mirrored(o, c, hpa.Status.Conditions)
	case ready != nil && ready.Status == metav1.ConditionTrue:
		c.Message = "KEDA has not made its HorizontalPodAutoscaler yet"
	}
	if active := meta.FindStatusCondition(live.Status.Conditions, kedaActive); c.Status == metav1.ConditionTrue &&
		active != nil && active.Status == metav1.ConditionFalse {
		c.Message = fmt.Sprintf("KEDA is about to take the last replica (%s): %s", active.Reason, active.Message)
	}
	return c
}

// paused says that the user switched KEDA off for the target.
func paused(live *LiveScaledObject) *metav1.Condition {
	return &metav1.Condition{
		Type: v1alpha1.ConditionScalingActive, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonScaledObjectPaused,
		Message: fmt.Sprintf("ScaledObject %s is paused by an annotation (autoscaling.keda.sh/paused or paused-replicas), "+
			"which switches scaling off: remove it to go on", live.Name),
	}
}
