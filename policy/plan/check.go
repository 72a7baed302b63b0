// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Check returns the first problem, or nil; the order is what to fix first. Other autoscalers do not conflict with a
// policy that writes no replicas: see CheckForAuto for those of one in mode Recommend.
func Check(s Subject, a Autoscalers) *Violation {
	if p := targetProblem(s); p != nil || !s.Applies() {
		return p
	}
	return scalingProblem(s, a)
}

// CheckForAuto returns the problem that a policy in mode Recommend would have in mode Auto; nil for none, or if
// conflictPolicy TakeOver would resolve it.
func CheckForAuto(s Subject, a Autoscalers) *Violation {
	if s.Target == nil || s.Policy.Spec.Mode != v1alpha1.ModeRecommend {
		return nil
	}
	if p := scalingProblem(s, a); !takesOver(s.Policy.Spec, p) {
		return p
	}
	return nil
}

// scalingProblem is that of schedules, other policies and other autoscalers. The policy may suspend what otherProblem
// finds, so that comes last.
func scalingProblem(s Subject, a Autoscalers) *Violation {
	return cmp.Or(leftBehind(s, a), ownProblem(s, a), kedaProblem(s, a), otherProblem(s, a))
}

// takesOver reports whether conflictPolicy TakeOver resolves the problem.
func takesOver(spec v1alpha1.AutoscalingPolicySpec, v *Violation) bool {
	return v != nil && spec.ConflictPolicy == v1alpha1.ConflictTakeOver && slices.Contains([]string{
		v1alpha1.ReasonFunctionHasOwnAutoscaler, v1alpha1.ReasonAutoscalerOrphaned,
		v1alpha1.ReasonConflictingAutoscaler,
	}, v.Reason)
}

// targetProblem is why the target cannot be scaled; nil if it can.
func targetProblem(s Subject) *Violation {
	spec, target := s.Policy.Spec, s.Target
	if s.Unfit != nil {
		return s.Unfit
	}
	if target == nil {
		field := "scaleTargetRef"
		if spec.PulsarFunctionRef.Name != "" {
			field = "pulsarFunctionRef"
		}
		return TargetProblem(v1alpha1.ReasonTargetNotFound,
			"%s does not exist in namespace %s: create it or correct spec.%s", Name(spec), s.Policy.Namespace, field)
	}
	object := target.Ref.Kind + " " + target.Ref.Name
	switch {
	case target.Owner != "":
		return Controlled(target)
	case target.Replicas == nil:
		return TargetProblem(v1alpha1.ReasonReplicasUnset,
			"%s has no spec.replicas, which scaling starts from: set it to %d", object, max(1, policy.MinReplicas(spec)))
	case target.MeshOwner != "":
		return TargetProblem(v1alpha1.ReasonOwnedByFunctionMesh, "%s belongs to FunctionMesh %s, which resets its replicas "+
			"at every change: replace this policy with one with scaleTargetRef %s", object, target.MeshOwner,
			throughMesh(target.Ref, target.MeshOwner))
	case target.Unmanaged != "":
		return TargetProblem(v1alpha1.ReasonUnmanaged, "%s has the annotation compute.functionmesh.io/managed: \"false\", "+
			"so scaling it has no effect: remove the annotation", target.Unmanaged)
	case target.Stopped:
		return TargetProblem(v1alpha1.ReasonStopped, "%s is stopped, and a change of its parallelism would start some of "+
			"its instances: start it first (pulsar-admin %ss start)", Name(spec),
			strings.ToLower(string(spec.PulsarFunctionRef.Kind)))
	}
	return nil
}

// Controlled reports that an owner sets the replicas of a StatefulSet or Deployment.
func Controlled(target *Target) *Violation {
	kind, name, _ := strings.Cut(target.Owner, " ")
	fix := "scale that instead"
	if v1alpha1.IsWorkload(kind) {
		fix = fmt.Sprintf("set spec.scaleTargetRef to kind %s, name %s instead", kind, name)
	}
	return TargetProblem(v1alpha1.ReasonOwnedByAnotherController,
		"%s %s is controlled by %s, which resets its replicas: %s", target.Ref.Kind, target.Ref.Name, target.Owner, fix)
}

// ownProblem is why the policy cannot have an autoscaler of its own; nil if it can.
func ownProblem(s Subject, a Autoscalers) *Violation {
	switch {
	case s.BadSchedule != nil:
		return ScalingProblem(v1alpha1.ReasonScheduleInvalid, "%s", s.BadSchedule)
	case a.OlderPolicy != "":
		why := "is older and scales"
		if a.OlderNames {
			why = "names"
		}
		return ScalingProblem(v1alpha1.ReasonOlderPolicy, "AutoscalingPolicy %s %s the same target: delete one of the two",
			a.OlderPolicy, why)
	case a.Autoscaler != nil && !metav1.IsControlledBy(a.Autoscaler, s.Policy):
		return ScalingProblem(v1alpha1.ReasonNameTaken, "HorizontalPodAutoscaler %s exists and is not this policy's: "+
			"rename or delete it", a.Autoscaler.Name)
	}
	return nil
}

// leftBehind is that an autoscaler of a deleted policy of the same name exists, which Kubernetes deletes by the UID of
// that policy; nil for none. KEDA's HorizontalPodAutoscaler follows its ScaledObject.
func leftBehind(s Subject, a Autoscalers) *Violation {
	of := func(object metav1.Object) bool {
		owner := metav1.GetControllerOfNoCopy(object)
		return owner != nil && owner.Kind == v1alpha1.KindAutoscalingPolicy && owner.Name == s.Policy.Name &&
			owner.UID != s.Policy.UID && strings.HasPrefix(owner.APIVersion, v1alpha1.Group+"/")
	}
	const waiting = "waiting until Kubernetes deletes %s %s of the deleted policy of this name"
	switch {
	case a.ScaledObject != nil && of(a.ScaledObject):
		return cmp.Or(notFinalized(a.ScaledObject, s.Now),
			ScalingProblem(v1alpha1.ReasonPending, waiting, KindScaledObject, a.ScaledObject.Name))
	case a.Autoscaler != nil && of(a.Autoscaler):
		return ScalingProblem(v1alpha1.ReasonPending, waiting, "HorizontalPodAutoscaler", a.Autoscaler.Name)
	default:
		return nil
	}
}

// otherProblem is the other autoscaler on the target; nil for none.
func otherProblem(s Subject, a Autoscalers) *Violation {
	target := s.Target
	orphan := slices.IndexFunc(a.Conflicting, func(r ConflictingAutoscaler) bool { return r.isOrphaned(target) })
	switch {
	case a.Restoring != "" && a.Autoscaler == nil && !a.kedaRemains(s.Policy):
		// An autoscaler that another policy restores and ours would stop each other. One of ours that already exists
		// continues, since nothing is restored beside it.
		return ScalingProblem(v1alpha1.ReasonRestoring, "AutoscalingPolicy %s restores what it took over on the same "+
			"target: wait for it, up to a minute", a.Restoring)
	case target.MaxReplicas != nil:
		field := "spec.maxReplicas"
		if target.Scaling == ByMesh {
			field = "maxReplicas"
		}
		return ScalingProblem(v1alpha1.ReasonFunctionHasOwnAutoscaler, "%s sets %s, so Function Mesh runs a "+
			"HorizontalPodAutoscaler of its own for it: remove %s, then delete HorizontalPodAutoscaler %s"+orTakeOver,
			Name(s.Policy.Spec), field, field, FunctionMeshName(target.Ref))
	case orphan >= 0:
		// When maxReplicas is removed, Function Mesh looks for its autoscaler under a wrong name and does not delete it.
		r := a.Conflicting[orphan]
		return ScalingProblem(v1alpha1.ReasonAutoscalerOrphaned, "HorizontalPodAutoscaler %s still scales %s %s although "+
			"maxReplicas is gone: delete it, since Function Mesh does not"+orTakeOver, r.Name, r.TargetKind, r.TargetName)
	case len(a.Conflicting) > 0: // all are named, the first with its effect and the fix
		first := a.Conflicting[0]
		message := first.String() + first.consequence(target) + ": " + conflictFix(first)
		var others []string
		for _, r := range a.Conflicting[1:] {
			others = append(others, r.String())
		}
		if len(others) > 0 {
			message += "; so does " + strings.Join(others, ", so does ")
		}
		return ScalingProblem(v1alpha1.ReasonConflictingAutoscaler, "%s", message)
	}
	return nil
}

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
			KindScaledObject, a.ScaledObject.Name)
	case len(a.OtherScaledObjects) > 0:
		// KEDA's webhook refuses a second ScaledObject for a target, even if the first is paused (KEDA 2.21,
		// apis/keda/v1alpha1/scaledobject_webhook.go, verifyScaledObjects).
		return ScalingProblem(v1alpha1.ReasonOtherScaledObject, "%s %s scales the same target, and KEDA admits only one for "+
			"a target, paused or not: delete it, or set actuator: HPA or Direct", KindScaledObject,
			strings.Join(a.OtherScaledObjects, ", "))
	}
	return nil
}

// kedaFinalizerTimeout is how long KEDA may take to finalize a deleted ScaledObject, usually well under a second.
const kedaFinalizerTimeout = time.Minute

// notFinalized is that KEDA does not finalize a deleted ScaledObject, so that a user has to; nil if it may yet.
func notFinalized(live *LiveScaledObject, now time.Time) *Violation {
	if live.DeletionTimestamp == nil || now.Sub(live.DeletionTimestamp.Time) <= kedaFinalizerTimeout {
		return nil
	}
	return ScalingProblem(v1alpha1.ReasonScaledObjectStays, "ScaledObject %s was deleted at %s and still exists, so "+
		"KEDA may still scale the target: check that KEDA's operator runs, or if KEDA is uninstalled remove its "+
		"finalizer finalizer.keda.sh", live.Name, live.DeletionTimestamp.UTC().Format(time.TimeOnly))
}

// KEDARemoval is why KEDA may still scale the target through a ScaledObject that is not wanted, or that blocks the next
// one; nil if it may not. Its reason is ReasonScaledObjectStays once a user has to act.
func KEDARemoval(s Subject, a Autoscalers, chosen v1alpha1.Actuator) *Violation {
	live := a.OwnScaledObject(s.Policy)
	switch wanted := chosen == v1alpha1.ActuatorKEDA && s.MayHaveScaledObject(); {
	case live != nil && notFinalized(live, s.Now) != nil:
		return notFinalized(live, s.Now)
	case live != nil && (live.DeletionTimestamp != nil || !wanted):
		return ScalingProblem(v1alpha1.ReasonPending, "waiting until KEDA finalizes ScaledObject %s", live.Name)
	case a.KEDAAutoscaler != nil && (live == nil || !wanted):
		return ScalingProblem(v1alpha1.ReasonPending, "waiting until KEDA's HorizontalPodAutoscaler %s is deleted, which "+
			"follows its ScaledObject; if KEDA is uninstalled and it stays, delete it", a.KEDAAutoscaler.Name)
	default:
		return nil
	}
}
