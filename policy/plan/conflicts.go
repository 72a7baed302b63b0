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

// otherProblem is the other autoscaler on the target; no reason for none.
func otherProblem(o Observed) (reason, message string) {
	target := o.Target
	orphan := slices.IndexFunc(o.Conflicting, func(r ConflictingAutoscaler) bool { return r.isOrphaned(target) })
	switch {
	case o.Restoring != "" && o.Autoscaler == nil && !o.kedaRemains():
		// An autoscaler that another policy restores and ours would stop each other. One of ours that already exists
		// continues, since nothing is restored beside it.
		return v1alpha1.ReasonRestoring, fmt.Sprintf("AutoscalingPolicy %s restores what it took over on the same target: "+
			"wait for it, up to a minute", o.Restoring)
	case target.OwnAutoscaler:
		field := "spec.maxReplicas"
		if target.Scaling == ByMesh {
			field = "maxReplicas"
		}
		return v1alpha1.ReasonFunctionHasOwnAutoscaler, fmt.Sprintf("%s sets %s, so Function Mesh runs a "+
			"HorizontalPodAutoscaler of its own for it: remove %s, then delete HorizontalPodAutoscaler %s"+orTakeOver,
			Name(o.Policy.Spec), field, field, FunctionMeshName(target.Ref))
	case orphan >= 0:
		// When maxReplicas is removed, Function Mesh looks for its autoscaler under a wrong name and does not delete it.
		r := o.Conflicting[orphan]
		return v1alpha1.ReasonAutoscalerOrphaned, fmt.Sprintf("HorizontalPodAutoscaler %s still scales %s %s although "+
			"maxReplicas is gone: delete it, since Function Mesh does not"+orTakeOver, r.Name, r.TargetKind, r.TargetName)
	case len(o.Conflicting) > 0: // all are named, the first with its effect and the fix
		first := o.Conflicting[0]
		message = first.String() + first.consequence(target) + ": " + conflictFix(first)
		var others []string
		for _, r := range o.Conflicting[1:] {
			others = append(others, r.String())
		}
		if len(others) > 0 {
			message += "; so does " + strings.Join(others, ", so does ")
		}
		return v1alpha1.ReasonConflictingAutoscaler, message
	}
	return "", ""
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
