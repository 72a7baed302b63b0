// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// Kinds of conflicting autoscalers and of scale targets.
const (
	kindAutoscaler   = "HorizontalPodAutoscaler"
	kindScaledObject = "ScaledObject"
	KindStatefulSet  = "StatefulSet"
	// KindFunctionMesh owns the objects of its components.
	KindFunctionMesh = "FunctionMesh"
)

// orTakeOver ends the message of a conflict that conflictPolicy TakeOver resolves.
const orTakeOver = ", or set conflictPolicy: TakeOver"

func noPolicyTakesPrecedence(others Others) *Violation {
	why := "is older and scales"
	switch {
	case others.OlderPolicy == "":
		return nil
	case others.OlderNames:
		why = "names"
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonOlderPolicy, fmt.Sprintf(
		"AutoscalingPolicy %s %s the same target: delete one of the two", others.OlderPolicy, why)}
}

// nameIsOurs: without maxReplicas, every reconcile of a Function, Sink or Source deletes the HorizontalPodAutoscaler of
// its name, even one that Function Mesh did not create.
//
// Source: Function Mesh v0.27.2, controllers/common.go deleteHPA.
func nameIsOurs(clash string) *Violation {
	if clash == "" {
		return nil
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonNameClash, fmt.Sprintf(
		"%s has the name of this policy's HorizontalPodAutoscaler, so Function Mesh would delete it repeatedly: recreate "+
			"the policy under another name",
		clash)}
}

// nothingIsBeingRestored: an autoscaler that another policy restores and ours would stop each other. An autoscaler of
// ours that already exists continues, since nothing is restored beside it.
func nothingIsBeingRestored(o Observed) *Violation {
	if o.Restoring == "" || o.Autoscaler != nil || o.kedaRemains() {
		return nil
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonRestoring, fmt.Sprintf(
		"AutoscalingPolicy %s restores what it took over on the same target: wait for it, up to a minute", o.Restoring)}
}

func functionMeshRunsNoAutoscaler(spec v1alpha1.AutoscalingPolicySpec, target *Target) *Violation {
	if !target.OwnAutoscaler {
		return nil
	}
	field := "spec.maxReplicas"
	if target.Scaling == ByMesh {
		field = "maxReplicas"
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonFunctionHasOwnAutoscaler, fmt.Sprintf(
		"%s sets %s, so Function Mesh runs a HorizontalPodAutoscaler of its own for it: remove %s, then delete "+
			"HorizontalPodAutoscaler %s"+orTakeOver,
		Name(spec), field, field, FunctionMeshName(target.Ref))}
}

// noAutoscalerIsOrphaned: when maxReplicas is removed, Function Mesh looks for its autoscaler under a wrong name and
// does not delete it.
func noAutoscalerIsOrphaned(target *Target, conflicting []ConflictingAutoscaler) *Violation {
	at := slices.IndexFunc(conflicting, func(r ConflictingAutoscaler) bool { return r.isOrphaned(target) })
	if at < 0 {
		return nil
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonAutoscalerOrphaned, fmt.Sprintf(
		"HorizontalPodAutoscaler %s still scales %s %s although maxReplicas is gone: delete it, since Function Mesh does "+
			"not"+orTakeOver,
		conflicting[at].Name, conflicting[at].TargetKind, conflicting[at].TargetName)}
}

// isOrphaned reports whether Function Mesh created the conflicting autoscaler for the target, and does not delete it.
func (r ConflictingAutoscaler) isOrphaned(target *Target) bool {
	return !target.OwnAutoscaler && r.ofFunctionMesh(target)
}

// ofFunctionMesh reports whether Function Mesh created the conflicting autoscaler for the target.
func (r ConflictingAutoscaler) ofFunctionMesh(target *Target) bool {
	ref := target.Ref
	return r.Kind == kindAutoscaler && r.Owner == ref.Kind+" "+ref.Name && r.Name == FunctionMeshName(ref)
}

// noAutoscalerConflicts names all conflicting autoscalers, the first with its effect and the fix.
func noAutoscalerConflicts(target *Target, conflicting []ConflictingAutoscaler) *Violation {
	if len(conflicting) == 0 {
		return nil
	}
	first := conflicting[0]
	message := first.String() + first.consequence(target) + ": " + conflictFix(first)
	if len(conflicting) > 1 {
		var others []string
		for _, r := range conflicting[1:] {
			others = append(others, r.String())
		}
		message += "; so does " + strings.Join(others, ", so does ")
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonConflictingAutoscaler, message}
}

// String names the autoscaler and its target.
func (r ConflictingAutoscaler) String() string {
	return fmt.Sprintf("%s %s scales %s %s", r.Kind, r.Name, r.TargetKind, r.TargetName)
}

// consequence is the effect of a conflicting autoscaler. Measured with Function Mesh v0.27.2 and Kubernetes 1.36: after
// a StatefulSet was scaled from 8 to 2, 6 pods were deleted and recreated at every sync of the HPA, without end.
func (r ConflictingAutoscaler) consequence(target *Target) string {
	if r.TargetKind == KindStatefulSet && target.Ref.Kind != KindStatefulSet {
		return fmt.Sprintf(", which belongs to %s %s: Function Mesh resets its replicas each time, so pods are DELETED "+
			"AND RECREATED AT EVERY SYNC",
			target.Ref.Kind, target.Ref.Name)
	}
	return ", and two autoscalers on the same pods stop both"
}

// ofPolicy reports whether a policy created it.
func (r ConflictingAutoscaler) ofPolicy() bool {
	return strings.HasPrefix(r.Owner, v1alpha1.KindAutoscalingPolicy+" ")
}

// conflictFix returns how to resolve a conflict.
func conflictFix(r ConflictingAutoscaler) string {
	switch {
	case r.Terminating && r.ofPolicy():
		return r.Owner + " defers to this policy and deletes it within seconds"
	case r.Terminating:
		return fmt.Sprintf("%s is paused, so KEDA is about to delete it; delete it if KEDA is uninstalled", r.Owner)
	case r.Kind == kindScaledObject && !r.ofPolicy():
		return `delete it, or pause it with the annotation autoscaling.keda.sh/paused: "true"` + orTakeOver
	case r.ofPolicy():
		return "delete " + r.Owner
	case r.Owner != "":
		return fmt.Sprintf("%s created it and would recreate it, so remove it there", r.Owner)
	default:
		return "delete it" + orTakeOver
	}
}
