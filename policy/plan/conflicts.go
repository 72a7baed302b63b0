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

func noPolicyTakesPrecedence(o Observed) *Violation {
	why := "is older and scales"
	switch {
	case o.OlderPolicy == "":
		return nil
	case o.OlderNames:
		why = "names"
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonOlderPolicy, fmt.Sprintf(
		"AutoscalingPolicy %s %s the same target: delete one of the two", o.OlderPolicy, why)}
}

// nameIsOurs: without maxReplicas, every reconcile of a Function, Sink or Source deletes the HorizontalPodAutoscaler of
// its name, even one that Function Mesh did not create.
//
// Source: Function Mesh v0.27.2, controllers/common.go deleteHPA.
func nameIsOurs(o Observed) *Violation {
	if o.NameClash == "" {
		return nil
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonNameClash, fmt.Sprintf(
		"%s has the name of this policy's HorizontalPodAutoscaler, so Function Mesh would delete it repeatedly: recreate "+
			"the policy under another name",
		o.NameClash)}
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

func functionMeshRunsNoAutoscaler(o Observed) *Violation {
	if !o.Target.OwnAutoscaler {
		return nil
	}
	field := "spec.maxReplicas"
	if o.Target.Scaling == ByMesh {
		field = "maxReplicas"
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonFunctionHasOwnAutoscaler, fmt.Sprintf(
		"%s sets %s, so Function Mesh runs a HorizontalPodAutoscaler of its own for it: remove %s, then delete "+
			"HorizontalPodAutoscaler %s"+orTakeOver,
		Name(o.Policy.Spec), field, field, FunctionMeshName(o.Target.Ref))}
}

// noAutoscalerIsOrphaned: when maxReplicas is removed, Function Mesh looks for its autoscaler under a wrong name and
// does not delete it.
func noAutoscalerIsOrphaned(o Observed) *Violation {
	at := slices.IndexFunc(o.Conflicting, func(r ConflictingAutoscaler) bool { return isOrphaned(o, r) })
	if at < 0 {
		return nil
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonAutoscalerOrphaned, fmt.Sprintf(
		"HorizontalPodAutoscaler %s still scales %s %s although maxReplicas is gone: delete it, since Function Mesh does "+
			"not"+orTakeOver,
		o.Conflicting[at].Name, o.Conflicting[at].TargetKind, o.Conflicting[at].TargetName)}
}

// isOrphaned reports whether Function Mesh created the conflicting autoscaler for the target, and does not delete it.
func isOrphaned(o Observed, r ConflictingAutoscaler) bool {
	return !o.Target.OwnAutoscaler && ofFunctionMesh(o, r)
}

// ofFunctionMesh reports whether Function Mesh created the conflicting autoscaler for the target.
func ofFunctionMesh(o Observed, r ConflictingAutoscaler) bool {
	ref := o.Target.Ref
	return r.Kind == kindAutoscaler && r.Owner == ref.Kind+" "+ref.Name && r.Name == FunctionMeshName(ref)
}

// noAutoscalerConflicts names all conflicting autoscalers, the first with its effect and the fix.
func noAutoscalerConflicts(o Observed) *Violation {
	if len(o.Conflicting) == 0 {
		return nil
	}
	first := o.Conflicting[0]
	message := first.String() + consequence(o, first) + ": " + conflictFix(first)
	if len(o.Conflicting) > 1 {
		var others []string
		for _, r := range o.Conflicting[1:] {
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
func consequence(o Observed, r ConflictingAutoscaler) string {
	if r.TargetKind == KindStatefulSet && o.Target.Ref.Kind != KindStatefulSet {
		return fmt.Sprintf(", which belongs to %s %s: Function Mesh resets its replicas each time, so pods are DELETED "+
			"AND RECREATED AT EVERY SYNC",
			o.Target.Ref.Kind, o.Target.Ref.Name)
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
