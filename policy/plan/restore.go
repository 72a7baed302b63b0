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
func Restore(o Observed) Restoration {
	var back Restoration
	if ours := o.Autoscaler; ours != nil && metav1.IsControlledBy(ours, o.Policy) {
		back.RemoveOurs = true
		return back
	}
	if o.kedaRemains() {
		back.RemoveOurs = true
		return back
	}
	taken := o.Policy.Status.TakenOver
	if taken == nil {
		return back
	}
	beside := besideWhatIsGivenBack(o, taken)
	for _, name := range taken.ScaledObjects {
		if beside != "" {
			back.Kept = append(back.Kept, fmt.Sprintf("%s %s: %s", kindScaledObject, name, beside))
			continue
		}
		back.ScaledObjects = append(back.ScaledObjects, string(name))
	}
	if taken.MaxReplicas != nil {
		if why := cmp.Or(keepsMaxReplicas(o), beside); why != "" {
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
		if why := cmp.Or(keepsAutoscaler(o, hpa), beside); why != "" {
			back.Kept = append(back.Kept, fmt.Sprintf("%s %s: %s", kindAutoscaler, hpa.Name, why))
			continue
		}
		back.Autoscalers = append(back.Autoscalers, hpa)
	}
	if why := stuckAtZero(o, back); why != "" {
		back.Kept = append(back.Kept, why)
	}
	return back
}

// keepsMaxReplicas says why it is not set again; empty when it is.
func keepsMaxReplicas(o Observed) string {
	switch {
	case o.Target == nil:
		return "the target is gone"
	case o.Target.OwnAutoscaler:
		return "a user or another controller set it meanwhile"
	case o.Target.Frozen != nil:
		return o.Target.Frozen.Message
	default:
		return ""
	}
}

// keepsAutoscaler says why one is not made again; empty when it is. A status may be written by others than us, so
// nothing is made from it that would scale anything but the target.
func keepsAutoscaler(o Observed, hpa *autoscalingv2.HorizontalPodAutoscaler) string {
	if o.Target == nil {
		return "the target is gone"
	}
	if !scaledWithTarget(o, hpa.Spec.ScaleTargetRef) {
		return "it does not scale the target"
	}
	for _, owner := range hpa.OwnerReferences {
		if owner.Kind != o.Target.Ref.Kind || owner.Name != o.Target.Ref.Name {
			return "it is not its own"
		}
	}
	for _, r := range o.Conflicting {
		if r.Name == hpa.Name {
			return "it is there already"
		}
	}
	return ""
}

// besideWhatIsGivenBack is what scales the target by now, so that nothing is given back beside it; empty when nothing
// does.
func besideWhatIsGivenBack(o Observed, taken *v1alpha1.TakenOver) string {
	if o.Target == nil {
		return ""
	}
	for _, r := range o.Conflicting {
		if !takenOver(o, taken, r) {
			return r.String() + " by now"
		}
	}
	return ""
}

// scaledWithTarget says that a reference names an object that has the target's replicas.
func scaledWithTarget(o Observed, ref autoscalingv2.CrossVersionObjectReference) bool {
	group := func(apiVersion string) string { before, _, _ := strings.Cut(apiVersion, "/"); return before }
	return slices.ContainsFunc(o.Target.Scaled, func(s v1alpha1.ScaleTargetRef) bool {
		return s.Kind == ref.Kind && s.Name == ref.Name && group(s.APIVersion) == group(ref.APIVersion)
	})
}

// takenOver says that a conflicting autoscaler is one of those that were suspended, or follows from one.
func takenOver(o Observed, taken *v1alpha1.TakenOver, r ConflictingAutoscaler) bool {
	own := o.Target.MaxReplicas
	// so that what follows from it is given back, too
	given := taken.MaxReplicas != nil && (own == nil || *own == *taken.MaxReplicas)
	if r.Terminating || slices.Contains(taken.ScaledObjects, v1alpha1.ObjectName(r.Name)) ||
		given && ofFunctionMesh(o, r) {
		return true
	}
	return slices.ContainsFunc(taken.HorizontalPodAutoscalers, func(m v1alpha1.Manifest) bool {
		hpa, err := DecodeManifest(m)
		return err == nil && hpa.Name == r.Name
	})
}

// stuckAtZero says that no autoscaler wakes the target once all is restored. A HorizontalPodAutoscaler does not, where
// KEDA does. Empty when that is not so.
func stuckAtZero(o Observed, back Restoration) string {
	if o.Target == nil || o.Target.Replicas == nil || *o.Target.Replicas != 0 ||
		(back.MaxReplicas == nil && len(back.Autoscalers) == 0) {
		return ""
	}
	return fmt.Sprintf("replicas of %s: they stay 0, where a HorizontalPodAutoscaler does nothing: set them to 1 or more",
		Name(o.Policy.Spec))
}
