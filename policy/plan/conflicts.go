// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// Autoscalers are what scales the target, or may: what the cluster offers, ours, and others.
type Autoscalers struct {
	// Capabilities of the cluster, as far as they are known.
	Capabilities Capabilities
	// Autoscaler is our HorizontalPodAutoscaler; nil if it does not exist, as ScaledObject and KEDAAutoscaler.
	Autoscaler *autoscalingv2.HorizontalPodAutoscaler
	// ManyLag reports that so many HorizontalPodAutoscalers of other policies lag that ours would.
	ManyLag bool
	// ScaledObject is the one of our name, and KEDAAutoscaler the HorizontalPodAutoscaler that KEDA created for it, and
	// deletes some time after it.
	ScaledObject   *LiveScaledObject
	KEDAAutoscaler *autoscalingv2.HorizontalPodAutoscaler
	// Conflicting are other autoscalers on the same target or on what the target owns.
	Conflicting []ConflictingAutoscaler
	// OtherScaledObjects are ScaledObjects on the same target that the policy does not own, paused or not, sorted. KEDA
	// admits one.
	OtherScaledObjects []string
	// OlderPolicy is the name of a policy on the same target that takes precedence; empty for none. OlderNames is true if
	// a user wrote it, while an AutoscalingPolicySet created this one.
	OlderPolicy string
	OlderNames  bool
	// Restoring is the name of a policy on the same target that restores what it took over; empty for none.
	Restoring string
}

// OwnScaledObject is the ScaledObject of the policy's name if the policy controls it; else nil.
func (a Autoscalers) OwnScaledObject(p *v1alpha1.AutoscalingPolicy) *LiveScaledObject {
	if a.ScaledObject == nil || !metav1.IsControlledBy(a.ScaledObject, p) {
		return nil
	}
	return a.ScaledObject
}

// kedaRemains reports whether KEDA may still scale the target for the policy: the ScaledObject exists, or its
// HorizontalPodAutoscaler, which KEDA deletes later.
func (a Autoscalers) kedaRemains(p *v1alpha1.AutoscalingPolicy) bool {
	return a.OwnScaledObject(p) != nil || a.KEDAAutoscaler != nil
}

// ConflictingAutoscaler is another autoscaler of the same replicas.
type ConflictingAutoscaler struct {
	Kind, Name string
	// TargetKind and TargetName name its scale target: ours, or the StatefulSet behind it.
	TargetKind, TargetName string
	// Owner controls it, such as "Function resize" or "ScaledObject resize"; empty for none.
	Owner string
	UID   types.UID
	// Terminating is true if it is about to be deleted: its owner is a paused ScaledObject, or a policy that defers to
	// this one.
	Terminating bool
	// Manifest recreates it; empty if it is too large for a status, or was not requested.
	Manifest v1alpha1.Manifest
}

// isOrphaned reports whether Function Mesh created the conflicting autoscaler for the target, and does not delete it.
func (r ConflictingAutoscaler) isOrphaned(target *Target) bool {
	return target.MaxReplicas == nil && r.ofFunctionMesh(target)
}

// ofFunctionMesh reports whether Function Mesh created the conflicting autoscaler for the target.
func (r ConflictingAutoscaler) ofFunctionMesh(target *Target) bool {
	ref := target.Ref
	return r.Kind == KindAutoscaler && r.Owner == ref.Kind+" "+ref.Name && r.Name == FunctionMeshName(ref)
}

// ofPolicy reports whether a policy created it.
func (r ConflictingAutoscaler) ofPolicy() bool {
	return strings.HasPrefix(r.Owner, v1alpha1.KindAutoscalingPolicy+" ")
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

// orTakeOver ends the message of a conflict that conflictPolicy TakeOver resolves.
const orTakeOver = ", or set conflictPolicy: TakeOver"

// conflictFix returns how to resolve a conflict.
func conflictFix(r ConflictingAutoscaler) string {
	switch {
	case r.Terminating && r.ofPolicy():
		return r.Owner + " defers to this policy and deletes it within seconds"
	case r.Terminating:
		return fmt.Sprintf("%s is paused, so KEDA is about to delete it; delete it if KEDA is uninstalled", r.Owner)
	case r.Kind == KindScaledObject && !r.ofPolicy():
		return `delete it, or pause it with the annotation autoscaling.keda.sh/paused: "true"` + orTakeOver
	case r.ofPolicy():
		return "delete " + r.Owner
	case r.Owner != "":
		return fmt.Sprintf("%s created it and would recreate it, so remove it there", r.Owner)
	default:
		return "delete it" + orTakeOver
	}
}
