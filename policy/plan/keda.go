// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// ownScaledObject is the ScaledObject of the policy's name if the policy controls it; else nil.
func (o Observed) ownScaledObject() *LiveScaledObject {
	if o.ScaledObject == nil || !metav1.IsControlledBy(o.ScaledObject, o.Policy) {
		return nil
	}
	return o.ScaledObject
}

// kedaRemains reports whether KEDA may still scale the target for the policy: the ScaledObject exists, or its
// HorizontalPodAutoscaler, which KEDA deletes later.
func (o Observed) kedaRemains() bool { return o.ownScaledObject() != nil || o.KEDAAutoscaler != nil }

// kedaIsInstalled: actuator KEDA has no fallback.
func kedaIsInstalled(o Observed) *Violation {
	if o.Policy.Spec.Actuator != v1alpha1.ActuatorKEDA {
		return nil
	}
	switch {
	case o.Capabilities.Scaler.Address == "":
		return &Violation{
			v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonScalerUnknown,
			"actuator is KEDA, and the adapter does not know the address of its scaler: " +
				"deploy the scaler and set --" + FlagScalerAddress + ", or set actuator: Auto",
		}
	case !o.Capabilities.KEDA:
		return &Violation{
			v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonKEDAMissing,
			"actuator is KEDA, and the adapter finds no ScaledObjects in this cluster: " +
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

// kedaAdmitsOurs: KEDA's webhook refuses a second ScaledObject for a target, even if the first is paused. An existing
// autoscaler of ours continues.
//
// Source: KEDA 2.21, apis/keda/v1alpha1/scaledobject_webhook.go, verifyScaledObjects.
func kedaAdmitsOurs(o Observed) *Violation {
	if o.Choose().Type != v1alpha1.ActuatorKEDA || len(o.OtherScaledObjects) == 0 {
		return nil
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonOtherScaledObject, fmt.Sprintf(
		"%s %s scales the same target, and KEDA admits only one for a target, paused or not: delete it, or set "+
			"actuator: HPA or Direct",
		kindScaledObject, strings.Join(o.OtherScaledObjects, ", "))}
}

// planKEDA changes one object at a time, since KEDA's webhook refuses two autoscalers. KEDA scales only from 0 to 1, so
// the controller writes the whole number itself. It writes the status first, in both directions: otherwise KEDA would
// revert the replicas to the last decision.
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
	actions.Replicas = replicasBesideAutoscaler(current, decided, off || live.forbids(current, decided))
	served := o.Policy.Status.DesiredReplicas
	// The scaler reads the decision from the status.
	unserved := actions.ScaledObject != nil && live == nil && (served == nil || *served != decided)
	actions.StatusFirst = unserved || (actions.Replicas != nil && (current == 0 || *actions.Replicas == 0))
	return actions
}

// forbids reports whether an annotation of the user makes KEDA skip the change.
func (l *LiveScaledObject) forbids(current, decided int32) bool {
	return l != nil && (l.Paused || (l.PausedIn && decided < current) || (l.PausedOut && decided > current))
}

// mayHaveScaledObject is false where KEDA would change frozen replicas. KEDA brings a target within bounds like any
// autoscaler, and unlike a HorizontalPodAutoscaler also a target that the user set to 0.
func mayHaveScaledObject(o Observed) bool {
	return o.Target.mayHaveAutoscaler(o.Policy.Spec) && !SwitchedOff(o)
}

// scaledObjectHasToWait reports whether to wait until the last ScaledObject is deleted with its autoscaler, or for the
// first decision: KEDA's behavior without an answer from the scaler is not predictable.
func scaledObjectHasToWait(o Observed) bool {
	live := o.ownScaledObject()
	if live == nil {
		return o.KEDAAutoscaler != nil || (o.Unknown != nil && o.Policy.Status.DesiredReplicas == nil)
	}
	return live.DeletionTimestamp != nil
}
