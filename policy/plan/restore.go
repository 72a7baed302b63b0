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

// Restoration is what to restore, and what not, as sentences that say why.
type Restoration struct {
	// RemoveOurs is true while our autoscaler exists: the controller removes it first, and the rest waits until it
	// is gone.
	RemoveOurs bool
	// MaxReplicas to set again; nil for none.
	MaxReplicas *int32
	// Autoscalers to create again.
	Autoscalers []*autoscalingv2.HorizontalPodAutoscaler
	// ScaledObjects that may go on, where they were paused for this policy.
	ScaledObjects []string
	Kept          []string
}

// MustRestore says that a policy holds what it is to restore: it is being deleted, or refuses by now.
func MustRestore(p *v1alpha1.AutoscalingPolicy) bool {
	holds := p.Status.TakenOver != nil || slices.Contains(p.Finalizers, Finalizer)
	return holds && (p.DeletionTimestamp != nil || p.Spec.ConflictPolicy != v1alpha1.ConflictTakeOver)
}

// Restore plans it. What a user or another controller changed meanwhile stays as it is.
func Restore(w Observed) Restoration {
	var back Restoration
	if ours := w.Autoscaler; ours != nil && metav1.IsControlledBy(ours, w.Policy) {
		back.RemoveOurs = true
		return back
	}
	if w.kedaRemains() {
		back.RemoveOurs = true
		return back
	}
	taken := w.Policy.Status.TakenOver
	if taken == nil {
		return back
	}
	beside := besideWhatIsGivenBack(w, taken)
	for _, name := range taken.ScaledObjects {
		if beside != "" {
			back.Kept = append(back.Kept, fmt.Sprintf("%s %s: %s", kindScaledObject, name, beside))
			continue
		}
		back.ScaledObjects = append(back.ScaledObjects, string(name))
	}
	if taken.MaxReplicas != nil {
		if why := cmp.Or(keepsMaxReplicas(w), beside); why != "" {
			back.Kept = append(back.Kept, fmt.Sprintf("maxReplicas %d: %s", *taken.MaxReplicas, why))
		} else {
			back.MaxReplicas = taken.MaxReplicas
		}
	}
	for _, m := range taken.HorizontalPodAutoscalers {
		hpa, err := DecodeManifest(m)
		if err != nil {
			back.Kept = append(back.Kept, err.Error())
			continue
		}
		if why := cmp.Or(keepsAutoscaler(w, hpa), beside); why != "" {
			back.Kept = append(back.Kept, fmt.Sprintf("%s %s: %s", kindAutoscaler, hpa.Name, why))
			continue
		}
		back.Autoscalers = append(back.Autoscalers, hpa)
	}
	if why := stuckAtZero(w, back); why != "" {
		back.Kept = append(back.Kept, why)
	}
	return back
}

// keepsMaxReplicas says why it is not set again; empty when it is.
func keepsMaxReplicas(w Observed) string {
	switch {
	case w.Target == nil:
		return "the target is gone"
	case w.Target.OwnAutoscaler:
		return "a user or another controller set it meanwhile"
	case w.Target.Frozen != nil:
		return w.Target.Frozen.Message
	default:
		return ""
	}
}

// keepsAutoscaler says why one is not made again; empty when it is. A status may be written by others than us, so
// nothing is made from it that would scale anything but the target.
func keepsAutoscaler(w Observed, hpa *autoscalingv2.HorizontalPodAutoscaler) string {
	if w.Target == nil {
		return "the target is gone"
	}
	if !scaledWithTarget(w, hpa.Spec.ScaleTargetRef) {
		return "it does not scale the target"
	}
	for _, owner := range hpa.OwnerReferences {
		if owner.Kind != w.Target.Ref.Kind || owner.Name != w.Target.Ref.Name {
			return "it is not its own"
		}
	}
	for _, r := range w.Conflicting {
		if r.Name == hpa.Name {
			return "it is there already"
		}
	}
	return ""
}

// besideWhatIsGivenBack is what scales the target by now, so that nothing is given back beside it; empty when nothing
// does.
func besideWhatIsGivenBack(w Observed, taken *v1alpha1.TakenOver) string {
	if w.Target == nil {
		return ""
	}
	for _, r := range w.Conflicting {
		if !takenOver(w, taken, r) {
			return r.String() + " by now"
		}
	}
	return ""
}

// scaledWithTarget says that a reference names an object that has the target's replicas.
func scaledWithTarget(w Observed, ref autoscalingv2.CrossVersionObjectReference) bool {
	group := func(apiVersion string) string { before, _, _ := strings.Cut(apiVersion, "/"); return before }
	return slices.ContainsFunc(w.Target.Scaled, func(s v1alpha1.ScaleTargetRef) bool {
		return s.Kind == ref.Kind && s.Name == ref.Name && group(s.APIVersion) == group(ref.APIVersion)
	})
}

// takenOver says that a conflicting autoscaler is one of those that were suspended, or follows from one.
func takenOver(w Observed, taken *v1alpha1.TakenOver, r ConflictingAutoscaler) bool {
	own := w.Target.MaxReplicas
	// so that what follows from it is given back, too
	given := taken.MaxReplicas != nil && (own == nil || *own == *taken.MaxReplicas)
	if r.Terminating || slices.Contains(taken.ScaledObjects, v1alpha1.ObjectName(r.Name)) || given && ofFunctionMesh(w, r) {
		return true
	}
	return slices.ContainsFunc(taken.HorizontalPodAutoscalers, func(m v1alpha1.Manifest) bool {
		hpa, err := DecodeManifest(m)
		return err == nil && hpa.Name == r.Name
	})
}

// stuckAtZero says that no autoscaler wakes the target once all is restored. A HorizontalPodAutoscaler does not, where
// KEDA does. Empty when that is not so.
func stuckAtZero(w Observed, back Restoration) string {
	if w.Target == nil || w.Target.Replicas == nil || *w.Target.Replicas != 0 ||
		(back.MaxReplicas == nil && len(back.Autoscalers) == 0) {
		return ""
	}
	return fmt.Sprintf("replicas of %s: they stay 0, where a HorizontalPodAutoscaler does nothing: set them to 1 or more",
		Name(w.Policy.Spec))
}
