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
	if reason, message := targetProblem(o); reason != "" {
		return &Violation{v1alpha1.ConditionTargetFound, reason, message}
	}
	if !o.Applies() {
		return nil
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

// autoscalersAgree checks schedules, other policies and other autoscalers. The policy may suspend what otherProblem
// finds, so that comes last.
func autoscalersAgree(o Observed) *Violation {
	reason, message := ownProblem(o)
	if reason == "" {
		reason, message = kedaProblem(o)
	}
	if reason == "" {
		reason, message = otherProblem(o)
	}
	if reason == "" {
		return nil
	}
	return &Violation{v1alpha1.ConditionAutoscalerApplied, reason, message}
}

// targetProblem is why the target cannot be scaled; no reason if it can.
func targetProblem(o Observed) (reason, message string) {
	spec, target := o.Policy.Spec, o.Target
	if o.Unsupported != "" {
		return v1alpha1.ReasonTargetKindUnsupported, o.Unsupported
	}
	if target == nil {
		field := "scaleTargetRef"
		if spec.PulsarFunctionRef.Name != "" {
			field = "pulsarFunctionRef"
		}
		return v1alpha1.ReasonTargetNotFound, fmt.Sprintf("%s does not exist in namespace %s: create it or correct spec.%s",
			Name(spec), o.Policy.Namespace, field)
	}
	object := target.Ref.Kind + " " + target.Ref.Name
	switch {
	case target.Invalid != "":
		return cmp.Or(target.InvalidReason, v1alpha1.ReasonTargetInvalid), target.Invalid
	case target.Owner != "":
		return v1alpha1.ReasonOwnedByAnotherController, Controlled(target)
	case target.Replicas == nil:
		return v1alpha1.ReasonReplicasUnset, fmt.Sprintf("%s has no spec.replicas, which scaling starts from: set it to %d",
			object, max(1, policy.MinReplicas(spec)))
	case target.MeshOwner != "":
		return v1alpha1.ReasonOwnedByFunctionMesh, fmt.Sprintf("%s belongs to FunctionMesh %s, which resets its replicas at "+
			"every change: replace this policy with one with scaleTargetRef %s", object, target.MeshOwner,
			throughMesh(target.Ref, target.MeshOwner))
	case target.Unmanaged:
		return v1alpha1.ReasonUnmanaged, fmt.Sprintf("%s has the annotation compute.functionmesh.io/managed: \"false\", so "+
			"scaling it has no effect: remove the annotation", cmp.Or(target.UnmanagedBy, object))
	case target.Stopped:
		return v1alpha1.ReasonStopped, fmt.Sprintf("%s is stopped, and a change of its parallelism would start some of its "+
			"instances: start it first (pulsar-admin %ss start)", Name(spec),
			strings.ToLower(string(spec.PulsarFunctionRef.Kind)))
	}
	return "", ""
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

// ownProblem is why the policy cannot have an autoscaler of its own; no reason if it can.
func ownProblem(o Observed) (reason, message string) {
	switch {
	case o.BadSchedule != nil:
		return v1alpha1.ReasonScheduleInvalid, o.BadSchedule.Error()
	case o.OlderPolicy != "":
		why := "is older and scales"
		if o.OlderNames {
			why = "names"
		}
		return v1alpha1.ReasonOlderPolicy, fmt.Sprintf("AutoscalingPolicy %s %s the same target: delete one of the two",
			o.OlderPolicy, why)
	case o.Autoscaler != nil && !metav1.IsControlledBy(o.Autoscaler, o.Policy):
		return v1alpha1.ReasonNameTaken, fmt.Sprintf("HorizontalPodAutoscaler %s exists and is not this policy's: rename or "+
			"delete it", o.Autoscaler.Name)
	case o.NameClash != "":
		// Without maxReplicas, every reconcile of a Function, Sink or Source deletes the HorizontalPodAutoscaler of its
		// name, even one that Function Mesh did not create (Function Mesh v0.27.2, controllers/common.go deleteHPA).
		return v1alpha1.ReasonNameClash, fmt.Sprintf("%s has the name of this policy's HorizontalPodAutoscaler, so Function "+
			"Mesh would delete it repeatedly: recreate the policy under another name", o.NameClash)
	}
	return "", ""
}
