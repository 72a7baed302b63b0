// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	acautoscalingv2 "k8s.io/client-go/applyconfigurations/autoscaling/v2"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Actions are what is to be written for a policy. Nil fields are left alone.
type Actions struct {
	// Autoscaler to apply.
	Autoscaler *acautoscalingv2.HorizontalPodAutoscalerApplyConfiguration
	// RemoveAutoscaler deletes ours.
	RemoveAutoscaler bool
	// ScaledObject to apply.
	ScaledObject *ScaledObjectConfiguration
	// RemoveScaledObject deletes ours.
	RemoveScaledObject bool
	// Replicas to write to the target.
	Replicas *int32
	// ApplyAnew applies Autoscaler although it is as it should be.
	ApplyAnew bool
	// Suspend is the conflicting autoscaler to suspend, and nothing else is written then.
	Suspend *Suspension
	// Restore is what was suspended and is restored, and nothing else is written then.
	Restore *Restoration
	// Wait says that nothing is written, the status included: the caches may show what was before the last write.
	Wait bool
	// Violation is what stands in the way; nil when nothing does.
	Violation *Violation
	// StatusFirst says that the status is to be written before Replicas. An autoscaler does nothing at zero and goes on
	// the moment there are replicas: it would take them down to what the metric said before.
	StatusFirst bool
}

// New says what to write. While there is a violation nothing is touched, ours included: taking ours away would hand
// the target to a conflicting autoscaler, which knows nothing of the backlog. Every violation thus freezes what runs
// until the user has decided. There is one exception: a policy gives way to one that takes precedence, else that one
// would wait for ever.
//
// The controller writes nothing to a frozen target, nor to one that the user set to 0 replicas while minReplicas is
// more: as for a HorizontalPodAutoscaler, that is how to switch scaling off. Any other number that a user or another
// autoscaler writes is taken for the present one: Decide goes on from it.
func New(o Observed, decision *policy.Decision) Actions {
	switch {
	case o.History.recentlyRestored(o):
		return Actions{Wait: true}
	case MustRestore(o.Policy):
		back := Restore(o)
		return Actions{Restore: &back, Violation: kedaStays(o)}
	}
	step, violation := NextSuspension(o)
	if step != nil {
		return Actions{Suspend: step}
	}
	o.Violation = violation
	actions := carryOut(o, decision)
	actions.Violation = violation
	return withoutRefused(o, actions)
}

// withoutRefused leaves out what the API server refused lately and would refuse again.
func withoutRefused(o Observed, actions Actions) Actions {
	refused := o.History.standingRefusal(o)
	if refused == nil || (actions.Autoscaler == nil && actions.ScaledObject == nil) ||
		(actions.ScaledObject != nil && ScaledObjectIsCurrent(o.ScaledObject, actions.ScaledObject)) {
		return actions
	}
	return Actions{
		RemoveAutoscaler: actions.RemoveAutoscaler, RemoveScaledObject: actions.RemoveScaledObject, Violation: refused,
	}
}

// carryOut says how the decision reaches the target.
func carryOut(o Observed, decision *policy.Decision) Actions {
	p := o.Policy
	if p.Spec.Mode == v1alpha1.ModeRecommend || p.Spec.Mode == v1alpha1.ModePaused {
		return Actions{RemoveAutoscaler: true, RemoveScaledObject: true}
	}
	if v := o.Violation; v != nil || o.Target == nil || o.Target.Replicas == nil {
		goes := v != nil && v.Reason == v1alpha1.ReasonOlderPolicy
		return Actions{RemoveAutoscaler: goes, RemoveScaledObject: goes}
	}
	current := *o.Target.Replicas
	decided := current
	if decision != nil {
		decided = decision.Replicas // which is the present number while the backlog is unknown: see keep
	}
	off := SwitchedOff(o) || o.Target.Frozen != nil
	switch {
	case o.Actuator.Type == v1alpha1.ActuatorKEDA:
		return planKEDA(o, current, decided, off)
	case o.kedaRemains():
		return Actions{RemoveScaledObject: true} // two writers at once would be one too many
	case o.Actuator.Type == v1alpha1.ActuatorDirect:
		return Actions{RemoveAutoscaler: true, Replicas: differing(decided, current, off)}
	}
	var actions Actions
	switch {
	case !o.Target.mayHaveAutoscaler(p.Spec):
		actions.RemoveAutoscaler = true
	case !o.undecided(): // an autoscaler without a metric only complains
		actions.Autoscaler = HorizontalPodAutoscaler(p, o.Target, o.Capabilities)
		actions.ApplyAnew = o.History.toleranceDue(o)
	}
	actions.Replicas = besideAutoscaler(o, current, decided, off)
	actions.StatusFirst = actions.Replicas != nil && current == 0
	return actions
}

// undecided says that the first answer of Pulsar is under way, for a second or two.
func (o Observed) undecided() bool {
	return errors.Is(o.Unknown, backlog.ErrNoData) && o.Policy.Status.DesiredReplicas == nil
}

// besideAutoscaler is the number that the controller writes although an autoscaler scales the target; nil for none.
func besideAutoscaler(o Observed, current, decided int32, off bool) *int32 {
	if !throughZero(o, decided, current) {
		return nil
	}
	return differing(decided, current, off)
}

// throughZero says that the way goes where our autoscaler does not: one that reaches zero does nothing while the
// backlog is unknown, for it gets no metric then.
func throughZero(o Observed, decided, current int32) bool {
	return (decided == 0 || current == 0) && (o.Unknown != nil || !autoscalerReachesZero(o))
}

// mayHaveAutoscaler is false for what is frozen out of bounds: an autoscaler would bring it back into them at once, and
// one that is there does so as soon as the bounds change, for they bound the metric.
func (t *Target) mayHaveAutoscaler(spec v1alpha1.AutoscalingPolicySpec) bool {
	return t.Frozen == nil || (*t.Replicas >= policy.MinReplicas(spec) && *t.Replicas <= spec.MaxReplicas)
}

// differing is the number to write, nil for none.
func differing(decided, current int32, off bool) *int32 {
	if off || decided == current {
		return nil
	}
	return &decided
}

// autoscalerReachesZero says that ours goes to zero and back by itself. One that has not gone there itself does nothing
// at zero (ScalingDisabled).
func autoscalerReachesZero(o Observed) bool {
	live := o.Autoscaler
	if !o.Capabilities.ScaleToZero || live == nil {
		return false
	}
	for _, c := range live.Status.Conditions {
		if c.Type == autoscalingv2.ScalingActive && c.Status == corev1.ConditionFalse && c.Reason == reasonScalingDisabled {
			return false
		}
	}
	return true
}

// reasonScalingDisabled is what a HorizontalPodAutoscaler says of a target at zero that it did not take there.
const reasonScalingDisabled = "ScalingDisabled"

// SwitchedOff says that the user set the target's replicas to 0 although the policy wants some. A target that was at
// zero because there was nothing to do is not switched off when minReplicas is raised: the condition of the last
// reconcile tells.
func SwitchedOff(o Observed) bool {
	if o.Target == nil || o.Target.Replicas == nil || *o.Target.Replicas != 0 ||
		(policy.MinReplicas(o.Policy.Spec) == 0 && !o.Target.NeverZero) {
		return false
	}
	last := meta.FindStatusCondition(o.Policy.Status.Conditions, v1alpha1.ConditionScalingActive)
	return last == nil || last.Reason != v1alpha1.ReasonScaledToZero
}

// Frozen is why the replicas have to stay as they are whatever the backlog; nil when they may change.
func Frozen(o Observed) *policy.Hold {
	switch {
	case o.Target == nil:
		return nil
	case o.Target.Frozen == nil && SwitchedOff(o):
		return &policy.Hold{Reason: policy.HoldSwitchedOff, Message: switchedOff(o)}
	default:
		return o.Target.Frozen
	}
}

func switchedOff(o Observed) string {
	return fmt.Sprintf("replicas of %s are 0 although minReplicas is %d, which switches scaling off: set them to 1 or "+
		"more, or minReplicas to 0",
		Name(o.Policy.Spec), max(1, policy.MinReplicas(o.Policy.Spec)))
}
