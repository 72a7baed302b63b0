// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// Restoration is what to restore. Kept explains what is not restored.
type Restoration struct {
	// RemoveOurs is true while our autoscaler exists: the controller deletes it, and restores the rest afterwards.
	RemoveOurs bool
	// MaxReplicas to restore; nil for none.
	MaxReplicas *int32
	// Autoscalers to recreate.
	Autoscalers []*autoscalingv2.HorizontalPodAutoscaler
	// ScaledObjects to resume, if they were paused for this policy.
	ScaledObjects []string
	Kept          []string
}

// MustRestore reports whether a policy must restore what it took over: it is being deleted, or conflictPolicy is Refuse
// now.
func MustRestore(p *v1alpha1.AutoscalingPolicy) bool {
	holds := p.Status.TakenOver != nil || slices.Contains(p.Finalizers, Finalizer)
	return holds && (p.DeletionTimestamp != nil || p.Spec.ConflictPolicy != v1alpha1.ConflictTakeOver)
}

// Restore plans it. Changes that a user or another controller made meanwhile stay.
func Restore(s Subject, a Autoscalers) Restoration {
	ours := a.Autoscaler
	if ours != nil && metav1.IsControlledBy(ours, s.Policy) || a.kedaRemains(s.Policy) {
		return Restoration{RemoveOurs: true}
	}
	suspended := s.Policy.Status.TakenOver
	if suspended == nil {
		return Restoration{}
	}
	var back Restoration
	beside := currentConflict(s.Target, a.Conflicting, suspended)
	stays := func(what, why string) bool {
		if why != "" {
			back.Kept = append(back.Kept, what+": "+why)
		}
		return why != ""
	}
	for _, name := range suspended.ScaledObjects {
		if !stays(KindScaledObject+" "+string(name), beside) {
			back.ScaledObjects = append(back.ScaledObjects, string(name))
		}
	}
	if most := suspended.MaxReplicas; most != nil &&
		!stays(fmt.Sprintf("maxReplicas %d", *most), cmp.Or(skipMaxReplicas(s.Target), beside)) {
		back.MaxReplicas = most
	}
	for _, m := range suspended.HorizontalPodAutoscalers {
		hpa, err := DecodeManifest(m)
		if err != nil {
			back.Kept = append(back.Kept, err.Error())
			continue
		}
		if !stays(KindAutoscaler+" "+hpa.Name, cmp.Or(skipAutoscaler(s, a.Conflicting, hpa), beside)) {
			back.Autoscalers = append(back.Autoscalers, hpa)
		}
	}
	stays("replicas of "+Name(s.Policy.Spec), stuckAtZero(s.Target, back))
	return back
}

// skipMaxReplicas is the reason not to restore maxReplicas; empty to restore it.
func skipMaxReplicas(target *Target) string {
	switch {
	case target == nil:
		return "the target is gone"
	case target.MaxReplicas != nil:
		return "a user or another controller set it meanwhile"
	case target.Frozen != nil:
		return target.Frozen.Message
	default:
		return ""
	}
}

// skipAutoscaler is the reason not to recreate an autoscaler; empty to recreate it. Other writers may change the
// status, so the controller recreates only autoscalers of the target.
func skipAutoscaler(s Subject, conflicting []ConflictingAutoscaler,
	hpa *autoscalingv2.HorizontalPodAutoscaler,
) string {
	if !scaledWithTarget(s, hpa.Spec.ScaleTargetRef) {
		return "it does not scale the target"
	}
	for _, owner := range hpa.OwnerReferences {
		switch {
		case s.Target == nil:
			return "its owner may be gone like the target"
		case owner.Kind != s.Target.Ref.Kind || owner.Name != s.Target.Ref.Name:
			return "another object owns it"
		}
	}
	for _, r := range conflicting {
		if r.Name == hpa.Name {
			return "it exists already"
		}
	}
	return ""
}

// currentConflict is the autoscaler that scales the target now; nothing is restored beside it. Empty for none.
func currentConflict(target *Target, conflicting []ConflictingAutoscaler, suspended *v1alpha1.TakenOver) string {
	if target == nil {
		return ""
	}
	for _, r := range conflicting {
		if !takenOver(target, suspended, r) {
			return r.String() + " by now"
		}
	}
	return ""
}

// scaledWithTarget reports whether a reference names an object that shares the target's replicas, also of one that is
// gone, which may come back.
func scaledWithTarget(s Subject, ref autoscalingv2.CrossVersionObjectReference) bool {
	group := func(apiVersion string) string { before, _, _ := strings.Cut(apiVersion, "/"); return before }
	running := ReplicasOf(s.Policy.Spec.ScaleTargetRef)
	scaled := []v1alpha1.ScaleTargetRef{running}
	switch {
	case s.Target != nil && len(s.Target.Scaled) > 0:
		scaled = s.Target.Scaled
	case v1alpha1.IsWorkload(running.Kind):
		scaled = append(scaled,
			v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: KindStatefulSet, Name: FunctionMeshName(running)})
	}
	return slices.ContainsFunc(scaled, func(s v1alpha1.ScaleTargetRef) bool {
		return s.Kind == ref.Kind && s.Name == ref.Name && group(s.APIVersion) == group(ref.APIVersion)
	})
}

// takenOver reports whether a conflicting autoscaler is a suspended one, or its operator creates it from one.
func takenOver(target *Target, suspended *v1alpha1.TakenOver, r ConflictingAutoscaler) bool {
	own := target.MaxReplicas
	// Function Mesh recreates its autoscaler from maxReplicas.
	given := suspended.MaxReplicas != nil && (own == nil || *own == *suspended.MaxReplicas)
	if r.Terminating || slices.Contains(suspended.ScaledObjects, v1alpha1.ObjectName(r.Name)) ||
		given && r.ofFunctionMesh(target) {
		return true
	}
	return slices.ContainsFunc(suspended.HorizontalPodAutoscalers, func(m v1alpha1.Manifest) bool {
		hpa, err := DecodeManifest(m)
		return err == nil && hpa.Name == r.Name
	})
}

// stuckAtZero is a warning that no autoscaler wakes the target after the restore, since a HorizontalPodAutoscaler does
// not; empty if one does.
func stuckAtZero(target *Target, restoration Restoration) string {
	if target == nil || target.Replicas == nil || *target.Replicas != 0 ||
		(restoration.MaxReplicas == nil && len(restoration.Autoscalers) == 0) {
		return ""
	}
	return "they stay 0, which disables a HorizontalPodAutoscaler: set them to 1 or more"
}
