// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// kedaProblem is why KEDA cannot scale the target for the policy; nil if it can, or if it is not chosen. An
// actuator that is named has no fallback.
func kedaProblem(s Subject, a Autoscalers) *Violation {
	known := a.Capabilities
	switch named := s.Policy.Spec.Actuator == v1alpha1.ActuatorKEDA; {
	case named && known.Scaler.Address == "":
		return ScalingProblem(v1alpha1.ReasonScalerUnknown, "actuator is KEDA, and the adapter does not know the address of "+
			"its scaler: deploy the scaler and set --%s (value scaler.enabled of the chart), or set actuator: Auto",
			FlagScalerAddress)
	case named && !known.KEDA:
		return ScalingProblem(v1alpha1.ReasonKEDAMissing, "actuator is KEDA, and the adapter finds no ScaledObjects in this "+
			"cluster: install KEDA, grant the adapter get, list and watch on scaledobjects.keda.sh, or set actuator: Auto")
	case chooseAdmitted(s, a).Type != v1alpha1.ActuatorKEDA:
	case a.ScaledObject != nil && a.OwnScaledObject(s.Policy) == nil:
		return ScalingProblem(v1alpha1.ReasonNameTaken, "%s %s exists and is not this policy's: rename or delete it",
			kindScaledObject, a.ScaledObject.Name)
	case len(a.OtherScaledObjects) > 0:
		// KEDA's webhook refuses a second ScaledObject for a target, even if the first is paused (KEDA 2.21,
		// apis/keda/v1alpha1/scaledobject_webhook.go, verifyScaledObjects).
		return ScalingProblem(v1alpha1.ReasonOtherScaledObject, "%s %s scales the same target, and KEDA admits only one for "+
			"a target, paused or not: delete it, or set actuator: HPA or Direct", kindScaledObject,
			strings.Join(a.OtherScaledObjects, ", "))
	}
	return nil
}

// kedaFinalizerTimeout is how long KEDA may take to finalize a deleted ScaledObject, usually well under a second.
const kedaFinalizerTimeout = time.Minute

// KEDARemoval is why KEDA may still scale the target through a ScaledObject that is not wanted, or that blocks the next
// one; nil if it may not. Its reason is ReasonScaledObjectStays once a user has to act.
func KEDARemoval(s Subject, a Autoscalers, chosen v1alpha1.Actuator) *Violation {
	live := a.OwnScaledObject(s.Policy)
	switch wanted := chosen == v1alpha1.ActuatorKEDA && s.MayHaveScaledObject(); {
	case live != nil && live.DeletionTimestamp != nil && s.Now.Sub(live.DeletionTimestamp.Time) > kedaFinalizerTimeout:
		return ScalingProblem(v1alpha1.ReasonScaledObjectStays, "ScaledObject %s was deleted at %s and still exists, so "+
			"KEDA may still scale the target: check that KEDA's operator runs, or if KEDA is uninstalled remove its "+
			"finalizer finalizer.keda.sh", live.Name, live.DeletionTimestamp.UTC().Format(time.TimeOnly))
	case live != nil && (live.DeletionTimestamp != nil || !wanted):
		return ScalingProblem(v1alpha1.ReasonPending, "waiting until KEDA finalizes ScaledObject %s", live.Name)
	case a.KEDAAutoscaler != nil && (live == nil || !wanted):
		return ScalingProblem(v1alpha1.ReasonPending, "waiting until KEDA's HorizontalPodAutoscaler %s is deleted, which "+
			"follows its ScaledObject; if KEDA is uninstalled and it stays, delete it", a.KEDAAutoscaler.Name)
	default:
		return nil
	}
}

// stuckScaledObject reports a ScaledObject that KEDA does not finalize; nil for none.
func stuckScaledObject(s Subject, a Autoscalers, chosen v1alpha1.Actuator) *Violation {
	if v := KEDARemoval(s, a, chosen); v != nil && v.Reason == v1alpha1.ReasonScaledObjectStays {
		return v
	}
	return nil
}
