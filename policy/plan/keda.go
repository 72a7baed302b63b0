// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// OwnScaledObject is the ScaledObject of the policy's name if the policy controls it; else nil.
func (o Observed) OwnScaledObject() *LiveScaledObject {
	if o.ScaledObject == nil || !metav1.IsControlledBy(o.ScaledObject, o.Policy) {
		return nil
	}
	return o.ScaledObject
}

// kedaRemains reports whether KEDA may still scale the target for the policy: the ScaledObject exists, or its
// HorizontalPodAutoscaler, which KEDA deletes later.
func (o Observed) kedaRemains() bool { return o.OwnScaledObject() != nil || o.KEDAAutoscaler != nil }

// kedaProblem is why KEDA cannot scale the target for the policy; nil if it can, or if it is not chosen. An
// actuator that is named has no fallback.
func kedaProblem(o Observed) *Violation {
	known := o.Capabilities
	switch named := o.Policy.Spec.Actuator == v1alpha1.ActuatorKEDA; {
	case named && known.Scaler.Address == "":
		return ScalingProblem(v1alpha1.ReasonScalerUnknown, "actuator is KEDA, and the adapter does not know the address of "+
			"its scaler: deploy the scaler and set --%s (value scaler.enabled of the chart), or set actuator: Auto",
			FlagScalerAddress)
	case named && !known.KEDA:
		return ScalingProblem(v1alpha1.ReasonKEDAMissing, "actuator is KEDA, and the adapter finds no ScaledObjects in this "+
			"cluster: install KEDA, grant the adapter get, list and watch on scaledobjects.keda.sh, or set actuator: Auto")
	case o.Choose().Type != v1alpha1.ActuatorKEDA:
	case o.ScaledObject != nil && o.OwnScaledObject() == nil:
		return ScalingProblem(v1alpha1.ReasonNameTaken, "%s %s exists and is not this policy's: rename or delete it",
			kindScaledObject, o.ScaledObject.Name)
	case len(o.OtherScaledObjects) > 0:
		// KEDA's webhook refuses a second ScaledObject for a target, even if the first is paused (KEDA 2.21,
		// apis/keda/v1alpha1/scaledobject_webhook.go, verifyScaledObjects).
		return ScalingProblem(v1alpha1.ReasonOtherScaledObject, "%s %s scales the same target, and KEDA admits only one for "+
			"a target, paused or not: delete it, or set actuator: HPA or Direct", kindScaledObject,
			strings.Join(o.OtherScaledObjects, ", "))
	}
	return nil
}

// planKEDA changes one object at a time, since KEDA's webhook refuses two autoscalers. KEDA scales only from 0 to 1, so
// the controller writes the whole number itself. It writes the status first, in both directions: otherwise KEDA would
// revert the replicas to the last decision.
func planKEDA(o Observed, current, decided int32, off bool) Actions {
	live := o.OwnScaledObject()
	var actions Actions
	switch {
	case o.Autoscaler != nil:
		return Actions{RemoveAutoscaler: true}
	case !MayHaveScaledObject(o):
		actions.RemoveScaledObject = true
	case scaledObjectHasToWait(o):
		return Actions{}
	default:
		actions.ScaledObject = ScaledObject(o.Limited(), o.Target, o.Capabilities.Scaler)
	}
	actions.Replicas = replicasBesideAutoscaler(current, decided, off || live.Forbids(current, decided))
	served := o.Policy.Status.DesiredReplicas
	// The scaler reads the decision from the status.
	unserved := actions.ScaledObject != nil && live == nil && (served == nil || *served != decided)
	actions.StatusFirst = unserved || (actions.Replicas != nil && (current == 0 || *actions.Replicas == 0))
	return actions
}

// Forbids reports whether an annotation of the user makes KEDA skip the change.
func (l *LiveScaledObject) Forbids(current, decided int32) bool {
	return l != nil && (l.Paused || (l.PausedIn && decided < current) || (l.PausedOut && decided > current))
}

// MayHaveScaledObject is false where KEDA would change frozen replicas. KEDA brings a target within bounds like any
// autoscaler, and unlike a HorizontalPodAutoscaler also a target that the user set to 0.
func MayHaveScaledObject(o Observed) bool {
	return o.Target.MayHaveAutoscaler(o.Limited().Spec) && SwitchedOff(o) == nil
}

// scaledObjectHasToWait reports whether to wait until the last ScaledObject is deleted with its autoscaler, or for the
// first decision: KEDA's behavior without an answer from the scaler is not predictable.
func scaledObjectHasToWait(o Observed) bool {
	live := o.OwnScaledObject()
	if live == nil {
		return o.KEDAAutoscaler != nil || (o.Unknown != nil && o.Policy.Status.DesiredReplicas == nil)
	}
	return live.DeletionTimestamp != nil
}

// kedaFinalizerTimeout is how long KEDA may take to finalize a deleted ScaledObject, usually well under a second.
const kedaFinalizerTimeout = time.Minute

// KEDARemoval is why KEDA may still scale the target through a ScaledObject that is not wanted, or that blocks the next
// one; nil if it may not. Its reason is ReasonScaledObjectStays once a user has to act.
func KEDARemoval(o Observed) *Violation {
	live := o.OwnScaledObject()
	switch wanted := o.Actuator.Type == v1alpha1.ActuatorKEDA && MayHaveScaledObject(o); {
	case live != nil && live.DeletionTimestamp != nil && o.Now.Sub(live.DeletionTimestamp.Time) > kedaFinalizerTimeout:
		return ScalingProblem(v1alpha1.ReasonScaledObjectStays, "ScaledObject %s was deleted at %s and still exists, so "+
			"KEDA may still scale the target: check that KEDA's operator runs, or if KEDA is uninstalled remove its "+
			"finalizer finalizer.keda.sh", live.Name, live.DeletionTimestamp.UTC().Format(time.TimeOnly))
	case live != nil && (live.DeletionTimestamp != nil || !wanted):
		return ScalingProblem(v1alpha1.ReasonPending, "waiting until KEDA finalizes ScaledObject %s", live.Name)
	case o.KEDAAutoscaler != nil && (live == nil || !wanted):
		return ScalingProblem(v1alpha1.ReasonPending, "waiting until KEDA's HorizontalPodAutoscaler %s is deleted, which "+
			"follows its ScaledObject; if KEDA is uninstalled and it stays, delete it", o.KEDAAutoscaler.Name)
	default:
		return nil
	}
}

// stuckScaledObject reports a ScaledObject that KEDA does not finalize; nil for none.
func stuckScaledObject(o Observed) *Violation {
	if v := KEDARemoval(o); v != nil && v.Reason == v1alpha1.ReasonScaledObjectStays {
		return v
	}
	return nil
}
