// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// ownScaledObject is the one of our name if it is the policy's; else nil.
func (o Observed) ownScaledObject() *LiveScaledObject {
	if o.ScaledObject == nil || !metav1.IsControlledBy(o.ScaledObject, o.Policy) {
		return nil
	}
	return o.ScaledObject
}

// kedaRemains says that KEDA may still scale the target for us: the ScaledObject is there, which KEDA holds back for as
// long as it takes to stop, or the HorizontalPodAutoscaler that goes after it.
func (o Observed) kedaRemains() bool { return o.ownScaledObject() != nil || o.KEDAAutoscaler != nil }

// kedaIsThere: a policy that names KEDA goes without it nowhere else.
func kedaIsThere(o Observed) *Violation {
	if o.Policy.Spec.Actuator != v1alpha1.ActuatorKEDA {
		return nil
	}
	switch {
	case o.Capabilities.Scaler.Address == "":
		return &Violation{
			v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonScalerUnknown,
			"actuator is KEDA, and the adapter was not told where KEDA reaches its scaler: " +
				"deploy the scaler and set --" + FlagScalerAddress + ", or set actuator: Auto",
		}
	case !o.Capabilities.KEDA:
		return &Violation{
			v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonKEDAMissing,
			"actuator is KEDA, and there are no ScaledObjects in this cluster that the adapter may see: " +
				"install KEDA, grant the adapter get, list and watch on scaledobjects.keda.sh, or set actuator: Auto",
		}
	default:
		return nil
	}
}

func scaledObjectIsOurs(o Observed) *Violation {
	if o.Choose().Type != v1alpha1.ActuatorKEDA || o.ScaledObject == nil || o.ownScaledObject() != nil {
		return nil
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonNameTaken, fmt.Sprintf(
		"%s %s exists and is not this policy's: rename or delete it", kindScaledObject, o.ScaledObject.Name)}
}

// kedaAdmitsOurs: KEDA's webhook refuses a second ScaledObject of a target, even beside one that is paused. What scales
// now goes on.
//
// Source: KEDA 2.21, apis/keda/v1alpha1/scaledobject_webhook.go, verifyScaledObjects.
func kedaAdmitsOurs(o Observed) *Violation {
	if o.Choose().Type != v1alpha1.ActuatorKEDA || len(o.OtherScaledObjects) == 0 {
		return nil
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonOtherScaledObject, fmt.Sprintf(
		"%s %s is for the same target, and KEDA admits one of a target even where it is paused: delete it, or set "+
			"actuator: HPA or Direct",
		kindScaledObject, strings.Join(o.OtherScaledObjects, ", "))}
}

// planKEDA plans for actuator KEDA: one thing at a time, so that there are never two autoscalers, which KEDA's webhook
// refuses. KEDA takes a target from 0 to 1, and then its HorizontalPodAutoscaler goes on: the controller writes the
// number that is needed itself. It tells the status before, in both directions: else KEDA would take back what was
// written by what was decided before.
func planKEDA(o Observed, current, decided int32, off bool) Actions {
	live := o.ownScaledObject()
	var actions Actions
	switch {
	case o.Autoscaler != nil:
		return Actions{RemoveAutoscaler: true}
	case !mayHaveScaledObject(o):
		actions.RemoveScaledObject = true
	case scaledObjectHasToWait(o):
		return Actions{}
	default:
		actions.ScaledObject = ScaledObject(o.Policy, o.Target, o.Capabilities.Scaler)
	}
	actions.Replicas = besideAutoscaler(o, current, decided, off || live.keeps(current, decided))
	told := o.Policy.Status.DesiredReplicas
	// the scaler has to know by then
	untold := actions.ScaledObject != nil && live == nil && (told == nil || *told != decided)
	actions.StatusFirst = untold || (actions.Replicas != nil && (current == 0 || *actions.Replicas == 0))
	return actions
}

// keeps says that the user told KEDA by an annotation to leave such a change alone.
func (l *LiveScaledObject) keeps(current, decided int32) bool {
	return l != nil && (l.Paused || (l.PausedIn && decided < current) || (l.PausedOut && decided > current))
}

// mayHaveScaledObject is false where KEDA would move what is to stay: it brings a target within bounds like any
// autoscaler, and one that the user set to 0 back to minReplicas, which a HorizontalPodAutoscaler does not.
func mayHaveScaledObject(o Observed) bool {
	return o.Target.mayHaveAutoscaler(o.Policy.Spec) && !SwitchedOff(o)
}

// scaledObjectHasToWait until the one before is gone with all that KEDA made of it, and for the first decision: the
// controller cannot foresee what KEDA makes of a scaler that knows nothing yet.
func scaledObjectHasToWait(o Observed) bool {
	live := o.ownScaledObject()
	if live == nil {
		return o.KEDAAutoscaler != nil || (o.Unknown != nil && o.Policy.Status.DesiredReplicas == nil)
	}
	return live.DeletionTimestamp != nil
}
