// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

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

// Check returns the first violation, or nil; the order is what to fix first. Other autoscalers do not conflict with a
// policy that writes no replicas: see CheckForAuto for those of one in mode Recommend.
func Check(o Observed) *Violation {
	if v := cmp.Or(targetKindIsSupported(o.Unsupported), targetExists(o.Policy, o.Target)); v != nil {
		return v
	}
	v := cmp.Or(
		targetIsValid(o.Target),
		nothingControlsTheTarget(o.Target),
		targetHasReplicas(o.Policy.Spec, o.Target),
		targetIsNotInAMesh(o.Target),
		targetIsManaged(o.Target),
		targetIsNotStopped(o.Policy.Spec, o.Target),
	)
	if v != nil || !o.Applies() {
		return v
	}
	return autoscalersAgree(o)
}

// CheckForAuto returns the violation that a policy in mode Recommend would have in mode Auto; nil for none, or if
// conflictPolicy TakeOver would resolve it.
func CheckForAuto(o Observed) *Violation {
	if o.Violation != nil || o.Target == nil || o.Policy.Spec.Mode != v1alpha1.ModeRecommend {
		return nil
	}
	if v := autoscalersAgree(o); !takesOver(o.Policy.Spec, v) {
		return v
	}
	return nil
}

// autoscalersAgree checks schedules, other policies and other autoscalers.
func autoscalersAgree(o Observed) *Violation {
	return cmp.Or(
		schedulesAreValid(o.BadSchedule),
		noPolicyTakesPrecedence(o.Others),
		autoscalerIsOurs(o.Policy, o.Autoscaler),
		nameIsOurs(o.NameClash),
		kedaIsInstalled(o.Policy.Spec, o.Capabilities),
		scaledObjectIsOurs(o),
		kedaAdmitsOurs(o),
		nothingIsBeingRestored(o),
		// The policy may suspend what the following checks find, so they come last.
		functionMeshRunsNoAutoscaler(o.Policy.Spec, o.Target),
		noAutoscalerIsOrphaned(o.Target, o.Conflicting),
		noAutoscalerConflicts(o.Target, o.Conflicting),
	)
}

func targetKindIsSupported(unsupported string) *Violation {
	if unsupported == "" {
		return nil
	}
	return &Violation{v1alpha1.ConditionTargetFound, v1alpha1.ReasonTargetKindUnsupported, unsupported}
}

func targetExists(p *v1alpha1.AutoscalingPolicy, target *Target) *Violation {
	if target != nil {
		return nil
	}
	field := "scaleTargetRef"
	if p.Spec.PulsarFunctionRef.Name != "" {
		field = "pulsarFunctionRef"
	}
	return &Violation{v1alpha1.ConditionTargetFound, v1alpha1.ReasonTargetNotFound, fmt.Sprintf(
		"%s does not exist in namespace %s: create it or correct spec.%s", Name(p.Spec), p.Namespace, field)}
}

func targetIsValid(target *Target) *Violation {
	if target.Invalid == "" {
		return nil
	}
	return &Violation{
		v1alpha1.ConditionTargetFound, cmp.Or(target.InvalidReason, v1alpha1.ReasonTargetInvalid),
		target.Invalid,
	}
}

func targetIsNotStopped(spec v1alpha1.AutoscalingPolicySpec, target *Target) *Violation {
	if !target.Stopped {
		return nil
	}
	return &Violation{v1alpha1.ConditionTargetFound, v1alpha1.ReasonStopped, fmt.Sprintf(
		"%s is stopped, and a change of its parallelism would start some of its instances: "+
			"start it first (pulsar-admin %ss start)",
		Name(spec), strings.ToLower(string(spec.PulsarFunctionRef.Kind)))}
}

func nothingControlsTheTarget(target *Target) *Violation {
	if target.Owner == "" {
		return nil
	}
	return &Violation{v1alpha1.ConditionTargetFound, v1alpha1.ReasonOwnedByAnotherController, Controlled(target)}
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

func targetHasReplicas(spec v1alpha1.AutoscalingPolicySpec, target *Target) *Violation {
	if target.Replicas != nil {
		return nil
	}
	return &Violation{v1alpha1.ConditionTargetFound, v1alpha1.ReasonReplicasUnset, fmt.Sprintf(
		"%s %s has no spec.replicas, which scaling starts from: set it to %d", target.Ref.Kind, target.Ref.Name,
		max(1, policy.MinReplicas(spec)))}
}

func targetIsNotInAMesh(target *Target) *Violation {
	if target.MeshOwner == "" {
		return nil
	}
	return &Violation{v1alpha1.ConditionTargetFound, v1alpha1.ReasonOwnedByFunctionMesh, fmt.Sprintf(
		"%s %s belongs to FunctionMesh %s, which resets its replicas at every change: replace this policy with one with "+
			"scaleTargetRef %s",
		target.Ref.Kind, target.Ref.Name, target.MeshOwner, throughMesh(target.Ref, target.MeshOwner))}
}

func targetIsManaged(target *Target) *Violation {
	if !target.Unmanaged {
		return nil
	}
	by := cmp.Or(target.UnmanagedBy, target.Ref.Kind+" "+target.Ref.Name)
	return &Violation{v1alpha1.ConditionTargetFound, v1alpha1.ReasonUnmanaged, fmt.Sprintf(
		"%s has the annotation compute.functionmesh.io/managed: \"false\", so scaling it has no effect: remove the "+
			"annotation", by)}
}

func schedulesAreValid(bad error) *Violation {
	if bad == nil {
		return nil
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonScheduleInvalid, bad.Error()}
}

func autoscalerIsOurs(p *v1alpha1.AutoscalingPolicy, live *autoscalingv2.HorizontalPodAutoscaler) *Violation {
	if live == nil {
		return nil
	}
	for _, owner := range live.OwnerReferences {
		if owner.Controller != nil && *owner.Controller && owner.UID == p.UID {
			return nil
		}
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonNameTaken, fmt.Sprintf(
		"HorizontalPodAutoscaler %s exists and is not this policy's: rename or delete it", live.Name)}
}
