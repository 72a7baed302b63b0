// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Violation is something that the user must fix before the controller scales the target. Until then it writes nothing.
type Violation struct {
	// Condition that becomes False.
	Condition string
	Reason    string
	// Message names the fix.
	Message string
}

// Check returns the first violation, or nil; the order is what to fix first. In mode Recommend other autoscalers do not
// conflict, since the policy writes no replicas.
func Check(o Observed) *Violation {
	checks := []func(Observed) *Violation{
		targetKindIsSupported,
		targetExists,
		targetIsValid,
		nothingControlsTheTarget,
		targetHasReplicas,
		targetIsNotInAMesh,
		targetIsManaged,
		targetIsNotStopped,
	}
	if o.Policy.Spec.Mode.IsAuto() {
		checks = append(checks,
			noPolicyTakesPrecedence,
			autoscalerIsOurs,
			nameIsOurs,
			kedaIsInstalled,
			scaledObjectIsOurs,
			kedaAdmitsOurs,
			nothingIsBeingRestored,
			// The policy may suspend what the following checks find, so they come last.
			functionMeshRunsNoAutoscaler,
			noAutoscalerIsOrphaned,
			noAutoscalerConflicts,
		)
	}
	for _, check := range checks {
		if v := check(o); v != nil {
			return v
		}
	}
	return nil
}

func targetKindIsSupported(o Observed) *Violation {
	if o.Unsupported == "" {
		return nil
	}
	return &Violation{v1alpha1.ConditionTargetFound, v1alpha1.ReasonTargetKindUnsupported, o.Unsupported}
}

func targetExists(o Observed) *Violation {
	if o.Target != nil {
		return nil
	}
	field := "scaleTargetRef"
	if o.Policy.Spec.PulsarFunctionRef.Name != "" {
		field = "pulsarFunctionRef"
	}
	return &Violation{v1alpha1.ConditionTargetFound, v1alpha1.ReasonTargetNotFound, fmt.Sprintf(
		"%s does not exist in namespace %s: create it or correct spec.%s", Name(o.Policy.Spec), o.Policy.Namespace, field)}
}

func targetIsValid(o Observed) *Violation {
	if o.Target.Invalid == "" {
		return nil
	}
	return &Violation{
		v1alpha1.ConditionTargetFound, cmp.Or(o.Target.InvalidReason, v1alpha1.ReasonTargetInvalid),
		o.Target.Invalid,
	}
}

func targetIsNotStopped(o Observed) *Violation {
	if !o.Target.Stopped {
		return nil
	}
	return &Violation{v1alpha1.ConditionTargetFound, v1alpha1.ReasonStopped, fmt.Sprintf(
		"%s is stopped, and a change of its parallelism would start some of its instances: "+
			"start it first (pulsar-admin %ss start)",
		Name(o.Policy.Spec), strings.ToLower(string(o.Policy.Spec.PulsarFunctionRef.Kind)))}
}

func nothingControlsTheTarget(o Observed) *Violation {
	if o.Target.Owner == "" {
		return nil
	}
	return &Violation{v1alpha1.ConditionTargetFound, v1alpha1.ReasonOwnedByAnotherController, Controlled(o.Target)}
}

// Controlled reports that an owner sets the replicas of a StatefulSet or Deployment, with the fix; empty for none.
func Controlled(target *Target) string {
	kind, name, _ := strings.Cut(target.Owner, " ")
	fix := "scale that instead"
	if slices.Contains([]v1alpha1.WorkloadKind{v1alpha1.WorkloadFunction, v1alpha1.WorkloadSink, v1alpha1.WorkloadSource},
		v1alpha1.WorkloadKind(kind)) {
		fix = fmt.Sprintf("set spec.scaleTargetRef to kind %s, name %s instead", kind, name)
	}
	return fmt.Sprintf("%s %s is controlled by %s, which resets its replicas: %s", target.Ref.Kind, target.Ref.Name,
		target.Owner, fix)
}

func targetHasReplicas(o Observed) *Violation {
	if o.Target.Replicas != nil {
		return nil
	}
	return &Violation{v1alpha1.ConditionTargetFound, v1alpha1.ReasonReplicasUnset, fmt.Sprintf(
		"%s %s has no spec.replicas, which scaling starts from: set it to %d", o.Target.Ref.Kind, o.Target.Ref.Name,
		max(1, policy.MinReplicas(o.Policy.Spec)))}
}

func targetIsNotInAMesh(o Observed) *Violation {
	if o.Target.MeshOwner == "" {
		return nil
	}
	return &Violation{v1alpha1.ConditionTargetFound, v1alpha1.ReasonOwnedByFunctionMesh, fmt.Sprintf(
		"%s %s belongs to FunctionMesh %s, which resets its replicas at every change: replace this policy with one with "+
			"scaleTargetRef %s",
		o.Target.Ref.Kind, o.Target.Ref.Name, o.Target.MeshOwner, throughMesh(o.Target.Ref, o.Target.MeshOwner))}
}

func targetIsManaged(o Observed) *Violation {
	if !o.Target.Unmanaged {
		return nil
	}
	by := cmp.Or(o.Target.UnmanagedBy, o.Target.Ref.Kind+" "+o.Target.Ref.Name)
	return &Violation{v1alpha1.ConditionTargetFound, v1alpha1.ReasonUnmanaged, fmt.Sprintf(
		"%s has the annotation compute.functionmesh.io/managed: \"false\", so scaling it has no effect: remove the "+
			"annotation", by)}
}

func autoscalerIsOurs(o Observed) *Violation {
	if o.Autoscaler == nil {
		return nil
	}
	for _, owner := range o.Autoscaler.OwnerReferences {
		if owner.Controller != nil && *owner.Controller && owner.UID == o.Policy.UID {
			return nil
		}
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonNameTaken, fmt.Sprintf(
		"HorizontalPodAutoscaler %s exists and is not this policy's: rename or delete it", o.Autoscaler.Name)}
}
