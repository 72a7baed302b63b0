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
	actuator := o.Actuator.Type
	if !o.Applies() {
		actuator = ""
	}
	switch left := plan.KEDARemoval(o.Subject, o.Autoscalers, actuator); { // objects that the actuator does not need
	case left != nil:
		return new(ofViolation(left))
	case actuator == v1alpha1.ActuatorKEDA:
		return new(scaledObjectApplied(o))
	default:
		return nil
	}
}

func scaledObjectApplied(o plan.Observed) metav1.Condition {
	name, exists := plan.AutoscalerName(o.Policy.Name), o.OwnScaledObject(o.Policy) != nil
	switch {
	case o.SwitchedOff() != nil:
		return Yes(v1alpha1.ReasonSwitchedOff, "there is no ScaledObject while replicas are 0, since KEDA would raise them")
	case !o.MayHaveScaledObject():
		return Unsure(v1alpha1.ReasonPending, "KEDA would bring the replicas within bounds, so the ScaledObject is created "+
			"when they may change: "+o.Target.Frozen.Message)
	case exists && o.KEDAAutoscaler != nil && !plan.ToleranceHonoured(o.KEDAAutoscaler):
		return Yes(v1alpha1.ReasonToleranceUnsupported, toleranceIsDropped)
	case exists:
		return Yes(v1alpha1.ReasonApplied, "ScaledObject "+name+" is up to date")
	case o.Unknown != nil:
		return Unsure(v1alpha1.ReasonPending, "the ScaledObject is created after the first decision")
	default:
		return Unsure(v1alpha1.ReasonPending, "the ScaledObject is created when HorizontalPodAutoscaler "+name+" is deleted")
	}
}

// kedaScales reports whether KEDA scales, in KEDA's words. The target has replicas.
func kedaScales(o plan.Observed) metav1.Condition {
	live, hpa := o.OwnScaledObject(o.Policy), o.KEDAAutoscaler
	c := Unsure(v1alpha1.ReasonPending, "KEDA has not reconciled the ScaledObject yet")
	if live == nil {
		return c
	}
	reported := func(name string) *metav1.Condition { return meta.FindStatusCondition(live.Status.Conditions, name) }
	ready, fallback, active := reported(kedaReady), reported(kedaFallback), reported(kedaActive)
	switch {
	case ready != nil && ready.Status == metav1.ConditionFalse:
		c = No(cmp.Or(ready.Reason, v1alpha1.ReasonPending), fmt.Sprintf("KEDA reports for ScaledObject %s: %s", live.Name,
			ready.Message))
	case fallback != nil && fallback.Status == metav1.ConditionTrue:
		c = No(v1alpha1.ReasonFallback, fmt.Sprintf("KEDA gets no answer from the scaler and holds the replicas (fallback), "+
			"see the events of ScaledObject %s: %s", live.Name, fallback.Message))
	case hpa != nil:
		c = mirrored(o, c, hpa.Status.Conditions)
	case ready != nil && ready.Status == metav1.ConditionTrue:
		c.Message = "KEDA has not created its HorizontalPodAutoscaler yet"
	}
	if c.Status == metav1.ConditionTrue && active != nil && active.Status == metav1.ConditionFalse {
		c.Message = fmt.Sprintf("KEDA is about to remove the last replica (%s): %s", active.Reason, active.Message)
	}
	return c
}
