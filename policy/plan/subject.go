// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Subject is the policy and its target, as they are now.
type Subject struct {
	Now    time.Time
	Policy *v1alpha1.AutoscalingPolicy
	// AllPaused is why all policies are paused; empty if they are not.
	AllPaused string
	// Limits of replicas while schedules are active; nil while those of the policy hold. BadSchedule is why a schedule
	// cannot be evaluated; nil if all can.
	Limits      *v1alpha1.Limits
	BadSchedule error
	// Target is nil when it does not exist.
	Target *Target
	// Unfit is why the target cannot be scaled, by its own fields and those of the policy; nil if it can.
	Unfit *Violation
}

// Paused is why nothing is decided or changed, although the backlog is measured; empty if decisions are made.
func (s Subject) Paused() string {
	if s.AllPaused == "" && s.Policy.Spec.Mode == v1alpha1.ModePaused {
		return "mode is Paused: the backlog is measured, and nothing is decided or changed"
	}
	return s.AllPaused
}

// Applies reports whether decisions are applied to the target.
func (s Subject) Applies() bool { return s.Policy.Spec.Mode.IsAuto() && s.Paused() == "" }

// Limited is the policy with the limits that hold now as its minReplicas and maxReplicas.
func (s Subject) Limited() *v1alpha1.AutoscalingPolicy {
	if s.Limits == nil {
		return s.Policy
	}
	p := *s.Policy
	p.Spec.MinReplicas, p.Spec.MaxReplicas = &s.Limits.MinReplicas, s.Limits.MaxReplicas
	return &p
}

// SwitchedOff is the hold of a target of which the user set the replicas to 0 although minReplicas is more; nil if they
// did not. A target that the policy scaled to zero is not switched off when minReplicas is raised: the last status has
// that condition, or it has desired replicas, which one that is switched off has not, and either number is 0.
func (s Subject) SwitchedOff() *policy.Hold {
	least := policy.MinReplicas(s.Policy.Spec)
	if s.Target == nil || s.Target.Replicas == nil || *s.Target.Replicas != 0 || (least == 0 && !s.Target.NeverZero) {
		return nil
	}
	status := s.Policy.Status
	last := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionScalingActive)
	if last != nil && last.Reason == v1alpha1.ReasonScaledToZero {
		return nil
	}
	if decided := status.DesiredReplicas; decided != nil && min(*decided, *cmp.Or(status.SpecReplicas, decided)) == 0 {
		return nil
	}
	although, fix := fmt.Sprintf("minReplicas is %d", least), ", or minReplicas to 0"
	if s.Target.NeverZero {
		although, fix = "it always needs one", ""
	}
	return &policy.Hold{Reason: policy.HoldSwitchedOff, Message: fmt.Sprintf(
		"replicas of %s are 0 although %s, which switches scaling off: set them to 1 or more%s", Name(s.Policy.Spec),
		although, fix)}
}

// MayHaveAutoscaler is false for a target that is frozen out of bounds: a new autoscaler would change its replicas at
// once, and an existing one does so when the bounds change.
func (s Subject) MayHaveAutoscaler() bool {
	t, spec := s.Target, s.Limited().Spec
	return t.Frozen == nil || (*t.Replicas >= policy.MinReplicas(spec) && *t.Replicas <= spec.MaxReplicas)
}

// MayHaveScaledObject is false where KEDA would change frozen replicas. KEDA brings a target within bounds like any
// autoscaler, and unlike a HorizontalPodAutoscaler also a target that the user set to 0.
func (s Subject) MayHaveScaledObject() bool {
	return s.MayHaveAutoscaler() && s.SwitchedOff() == nil
}

// OwnChildMissing reports whether the target itself does not exist yet.
func (s Subject) OwnChildMissing() bool {
	missing := s.Target.MissingChild
	return missing != nil && missing.Component == s.Policy.Spec.ScaleTargetRef.Component
}

// Target is the scale target of a policy, by its own fields.
type Target struct {
	// Ref is the object that runs the replicas: the one that the policy names, or the child of a FunctionMesh; zero for a
	// function of a worker.
	Ref v1alpha1.ScaleTargetRef
	// Scaling is how the controller changes its replicas.
	Scaling Scaling
	// Scaled are the objects that share the target's replicas, itself included: an autoscaler on any of them conflicts.
	Scaled []v1alpha1.ScaleTargetRef
	// UID changes when the target, or the child of a FunctionMesh, is deleted and recreated. It is empty while there is no
	// child, and for a function of a worker, which has none.
	UID string
	// Replicas is spec.replicas; nil if the field is absent, which the scale subresource needs.
	Replicas *int32
	// Reported is status.replicas of the target or of its StatefulSet; nil if neither reports it. It exceeds Replicas
	// while a rollout of a Deployment replaces pods.
	Reported *int32
	// Unfollowed is why the operator has not acted on the replicas, with the fix if this lasts; empty if it has, or if
	// that is unknown.
	Unfollowed string
	// PodSelector selects its pods, by its scale subresource; empty if unknown.
	PodSelector string
	// Subscription that its replicas share.
	Subscription backlog.Subscription
	// Output is the topic, by its full name, that its replicas publish to; empty if unknown or none.
	Output string
	// SubscriptionType is the type by the target's fields.
	SubscriptionType backlog.SubscriptionType
	// Component is the name of the replicas in Pulsar: tenant/namespace/name.
	Component string
	// NeverAcknowledges is true for a window function that leaves messages in the backlog forever.
	NeverAcknowledges bool
	// NeverZero is true for targets that always need a replica: batch sources, and functions of a worker.
	NeverZero bool
	// MaxReplicas is spec.maxReplicas, up to which the target's operator runs an autoscaler of its own; nil for none.
	MaxReplicas *int32
	// MeshOwner is the FunctionMesh that controls the target and resets its replicas; empty for none, or if the policy
	// scales through the mesh.
	MeshOwner string
	// Owner controls the StatefulSet or Deployment that is the target, such as "Function resize"; empty for none.
	Owner string
	// MissingChild is the entry of the FunctionMesh at which Function Mesh stops before the target is created or scaled:
	// the target's own, or an earlier one; nil for none.
	MissingChild *MissingChild
	// Least is how many replicas its entry in a FunctionMesh needs while Function Mesh creates it; 0 for other targets.
	Least int32
	// Unmanaged is the object, such as "FunctionMesh etl", of which an annotation makes the operator ignore the target, so
	// that scaling it has no effect; empty for none.
	Unmanaged string
	// Stopped is true for a function of a worker that the user stopped.
	Stopped bool
	// Updating is true while a rollout is replacing its pods.
	Updating bool
	// Frozen is why its replicas cannot change now; nil if they can.
	Frozen *policy.Hold
	// GracePeriod is how long its pods may take to end; nil if unknown, or if the user cannot set it. MostUsefulGrace is
	// the longest time that they use to finish a call; zero for no limit.
	GracePeriod     *time.Duration
	MostUsefulGrace time.Duration
	// Disturbances are why a change of the replicas restarts the running ones, or changes what was learned about them.
	Disturbances []Disturbance
}

// Restarts reports whether each change of the replicas is known to restart the running ones.
func (t *Target) Restarts() bool {
	for _, d := range t.Disturbances {
		if d.Restarts {
			return true
		}
	}
	return false
}

// raised reports whether the entry of a FunctionMesh is at its least although fewer were decided, as while its child
// is created.
func (t *Target) raised(decided int32) bool { return decided < t.Least && *t.Replicas == t.Least }

// MissingChild is an entry of a FunctionMesh without its child. With fewer Replicas than Least, its minReplicas but 1
// or more, Function Mesh's webhook refuses to create that.
type MissingChild struct {
	Component       v1alpha1.MeshComponent
	Replicas, Least int32
}

// Disturbance is a reason and a message with the fix, for condition ScalesWithoutRestart.
type Disturbance struct {
	Reason, Message string
	// Restarts is true if each change of the replicas restarts all running ones.
	Restarts bool
}

// Scaling is how the controller changes the replicas of a target.
type Scaling int

// The methods of scaling.
const (
	// BySubresource is the scale subresource of the target itself.
	BySubresource Scaling = iota
	// ByMesh is a patch of its entry in a FunctionMesh.
	ByMesh
	// ByWorker is the REST API of a function worker.
	ByWorker
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
