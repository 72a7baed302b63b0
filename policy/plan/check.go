// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Violation is something that a user must fix before the controller scales the target. Until then it writes nothing.
type Violation struct { //nolint:errname // it is first of all a result, and an error where Go wants one
	// Condition that becomes False.
	Condition string
	Reason    string
	// Message names the fix.
	Message string
}

// TargetProblem is why the target cannot be scaled.
func TargetProblem(reason, format string, args ...any) *Violation {
	return &Violation{v1alpha1.ConditionTargetFound, reason, fmt.Sprintf(format, args...)}
}

// ScalingProblem is why the policy cannot scale its target, such as another autoscaler.
func ScalingProblem(reason, format string, args ...any) *Violation {
	return &Violation{v1alpha1.ConditionAutoscalerApplied, reason, fmt.Sprintf(format, args...)}
}

// Error implements error.
func (p *Violation) Error() string { return p.Message }

// Unwrap says that waiting does not help: the user has to correct it.
func (p *Violation) Unwrap() error { return backlog.ErrUnsupported }

// Check returns the first problem, or nil; the order is what to fix first. Other autoscalers do not conflict with a
// policy that writes no replicas: see CheckForAuto for those of one in mode Recommend.
func Check(o Observed) *Violation {
	if p := targetProblem(o); p != nil || !o.Applies() {
		return p
	}
	return scalingProblem(o)
}

// CheckForAuto returns the problem that a policy in mode Recommend would have in mode Auto; nil for none, or if
// conflictPolicy TakeOver would resolve it.
func CheckForAuto(o Observed) *Violation {
	if o.Violation != nil || o.Target == nil || o.Policy.Spec.Mode != v1alpha1.ModeRecommend {
		return nil //nolint:nilerr // a violation is a result
	}
	if p := scalingProblem(o); !takesOver(o.Policy.Spec, p) {
		return p
	}
	return nil
}

// scalingProblem is that of schedules, other policies and other autoscalers. The policy may suspend what otherProblem
// finds, so that comes last.
func scalingProblem(o Observed) *Violation {
	return cmp.Or(ownProblem(o), kedaProblem(o), otherProblem(o))
}

// targetProblem is why the target cannot be scaled; nil if it can.
func targetProblem(o Observed) *Violation {
	spec, target := o.Policy.Spec, o.Target
	if o.Unfit != nil {
		return o.Unfit
	}
	if target == nil {
		field := "scaleTargetRef"
		if spec.PulsarFunctionRef.Name != "" {
			field = "pulsarFunctionRef"
		}
		return TargetProblem(v1alpha1.ReasonTargetNotFound,
			"%s does not exist in namespace %s: create it or correct spec.%s", Name(spec), o.Policy.Namespace, field)
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
	case target.Unmanaged:
		return TargetProblem(v1alpha1.ReasonUnmanaged, "%s has the annotation compute.functionmesh.io/managed: \"false\", "+
			"so scaling it has no effect: remove the annotation", cmp.Or(target.UnmanagedBy, object))
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
	if slices.Contains([]v1alpha1.WorkloadKind{v1alpha1.WorkloadFunction, v1alpha1.WorkloadSink, v1alpha1.WorkloadSource},
		v1alpha1.WorkloadKind(kind)) {
		fix = fmt.Sprintf("set spec.scaleTargetRef to kind %s, name %s instead", kind, name)
	}
	return TargetProblem(v1alpha1.ReasonOwnedByAnotherController,
		"%s %s is controlled by %s, which resets its replicas: %s", target.Ref.Kind, target.Ref.Name, target.Owner, fix)
}

// ownProblem is why the policy cannot have an autoscaler of its own; nil if it can.
func ownProblem(o Observed) *Violation {
	switch {
	case o.BadSchedule != nil:
		return ScalingProblem(v1alpha1.ReasonScheduleInvalid, "%s", o.BadSchedule)
	case o.OlderPolicy != "":
		why := "is older and scales"
		if o.OlderNames {
			why = "names"
		}
		return ScalingProblem(v1alpha1.ReasonOlderPolicy, "AutoscalingPolicy %s %s the same target: delete one of the two",
			o.OlderPolicy, why)
	case o.Autoscaler != nil && !metav1.IsControlledBy(o.Autoscaler, o.Policy):
		return ScalingProblem(v1alpha1.ReasonNameTaken, "HorizontalPodAutoscaler %s exists and is not this policy's: "+
			"rename or delete it", o.Autoscaler.Name)
	case o.NameClash != "":
		// Without maxReplicas, every reconcile of a Function, Sink or Source deletes the HorizontalPodAutoscaler of its
		// name, even one that Function Mesh did not create (Function Mesh v0.27.2, controllers/common.go deleteHPA).
		return ScalingProblem(v1alpha1.ReasonNameClash, "%s has the name of this policy's HorizontalPodAutoscaler, so "+
			"Function Mesh would delete it repeatedly: recreate the policy under another name", o.NameClash)
	}
	return nil
}

// orTakeOver ends the message of a conflict that conflictPolicy TakeOver resolves.
const orTakeOver = ", or set conflictPolicy: TakeOver"

// otherProblem is the other autoscaler on the target; nil for none.
func otherProblem(o Observed) *Violation {
	target := o.Target
	orphan := slices.IndexFunc(o.Conflicting, func(r ConflictingAutoscaler) bool { return r.isOrphaned(target) })
	switch {
	case o.Restoring != "" && o.Autoscaler == nil && !o.kedaRemains():
		// An autoscaler that another policy restores and ours would stop each other. One of ours that already exists
		// continues, since nothing is restored beside it.
		return ScalingProblem(v1alpha1.ReasonRestoring, "AutoscalingPolicy %s restores what it took over on the same "+
			"target: wait for it, up to a minute", o.Restoring)
	case target.OwnAutoscaler:
		field := "spec.maxReplicas"
		if target.Scaling == ByMesh {
			field = "maxReplicas"
		}
		return ScalingProblem(v1alpha1.ReasonFunctionHasOwnAutoscaler, "%s sets %s, so Function Mesh runs a "+
			"HorizontalPodAutoscaler of its own for it: remove %s, then delete HorizontalPodAutoscaler %s"+orTakeOver,
			Name(o.Policy.Spec), field, field, FunctionMeshName(target.Ref))
	case orphan >= 0:
		// When maxReplicas is removed, Function Mesh looks for its autoscaler under a wrong name and does not delete it.
		r := o.Conflicting[orphan]
		return ScalingProblem(v1alpha1.ReasonAutoscalerOrphaned, "HorizontalPodAutoscaler %s still scales %s %s although "+
			"maxReplicas is gone: delete it, since Function Mesh does not"+orTakeOver, r.Name, r.TargetKind, r.TargetName)
	case len(o.Conflicting) > 0: // all are named, the first with its effect and the fix
		first := o.Conflicting[0]
		message := first.String() + first.consequence(target) + ": " + conflictFix(first)
		var others []string
		for _, r := range o.Conflicting[1:] {
			others = append(others, r.String())
		}
		if len(others) > 0 {
			message += "; so does " + strings.Join(others, ", so does ")
		}
		return ScalingProblem(v1alpha1.ReasonConflictingAutoscaler, "%s", message)
	}
	return nil
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
