// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Actions are the writes for a policy. Nil fields are not written.
type Actions struct {
	// Autoscaler to apply.
	Autoscaler *autoscalingv2.HorizontalPodAutoscaler
	// RemoveAutoscaler deletes our HorizontalPodAutoscaler.
	RemoveAutoscaler bool
	// ScaledObject to apply.
	ScaledObject *ScaledObjectConfiguration
	// RemoveScaledObject deletes our ScaledObject.
	RemoveScaledObject bool
	// Replicas to write to the target.
	Replicas *int32
	// Reapply applies Autoscaler although it is up to date.
	Reapply bool
	// Suspend is the conflicting autoscaler to suspend, as the only write.
	Suspend *Suspension
	// Restore is what to restore, as the only write.
	Restore *Restoration
	// Wait is true if the controller writes nothing, not even the status: the caches may be outdated after the last write.
	Wait bool
	// Violation is what the user has to fix; nil for none.
	Violation *Violation
	// StatusFirst is true if the controller writes the status before Replicas. An autoscaler resumes as soon as there are
	// replicas, and would set the number of the last status.
	StatusFirst bool
}

// Wakes reports whether Replicas wake a target that was at zero by decision.
func (a Actions) Wakes(o Observed) bool {
	if a.Replicas == nil || *o.Target.Replicas != 0 || o.CreatesChild() {
		return false
	}
	reported := o.Policy.Status.DesiredReplicas
	return a.StatusFirst || reported != nil && *reported == 0
}

// Result is the result of the actions.
type Result struct {
	// Autoscaler and ScaledObject are ours after the writes; nil if they do not exist.
	Autoscaler   *autoscalingv2.HorizontalPodAutoscaler
	ScaledObject *LiveScaledObject
	// Violation is that of the plan, or why the API server refuses our autoscaler; nil for none.
	Violation *Violation
	// Refused is true if the API server refused our autoscaler in this reconcile.
	Refused bool
	// ApplyFailed is why the state of our autoscaler, or of a suspended or restored one, is unknown: a write failed and is
	// retried.
	ApplyFailed error
	// ScaleFailed is why the target's replicas were not written; nil if they were, or need not be.
	ScaleFailed error
	// Suspended and Restored are true if another autoscaler was suspended or restored.
	Suspended, Restored bool
}

// Unwritten is the result before the first write.
func Unwritten(o Observed, actions Actions) Result {
	return Result{Autoscaler: o.Autoscaler, ScaledObject: o.ScaledObject, Violation: actions.Violation}
}

// New plans the writes. A problem freezes the target and our autoscaler: without ours, a conflicting autoscaler that
// ignores the backlog would take over. One exception: a policy defers to one that takes precedence, which would
// otherwise wait forever.
//
// The controller writes nothing to a frozen target. It also writes nothing to a target that the user set to 0 replicas
// while minReplicas is more: that switches scaling off, as for a HorizontalPodAutoscaler. Any other number that a user
// or an autoscaler writes becomes the current one, from which Decide continues.
func New(o Observed, decision *policy.Decision) Actions {
	switch {
	case o.History.recentlyRestored(o.Now):
		return Actions{Wait: true}
	case MustRestore(o.Policy):
		restoration := Restore(o)
		return o.History.pacedHandover(o, Actions{Restore: &restoration, Violation: stuckScaledObject(o)})
	}
	step, problem := NextSuspension(o)
	if step != nil {
		return o.History.pacedHandover(o, Actions{Suspend: step})
	}
	o.Violation = problem
	actions := planWrites(o, decision)
	actions.Violation = problem
	return withoutRefused(o, actions)
}

// withoutRefused leaves out an apply that the API server would refuse again.
func withoutRefused(o Observed, actions Actions) Actions {
	refused := o.History.refusal.pausing(o, identity(o))
	if refused == nil || (actions.Autoscaler == nil && actions.ScaledObject == nil) ||
		(actions.ScaledObject != nil && ScaledObjectIsCurrent(o.ScaledObject, actions.ScaledObject)) {
		return actions
	}
	return Actions{
		RemoveAutoscaler: actions.RemoveAutoscaler, RemoveScaledObject: actions.RemoveScaledObject, Violation: refused,
	}
}

// planWrites plans how the decision reaches the target.
func planWrites(o Observed, decision *policy.Decision) Actions {
	p := o.Limited()
	if !o.Applies() {
		return Actions{RemoveAutoscaler: true, RemoveScaledObject: true}
	}
	if v := o.Violation; v != nil || o.Target == nil || o.Target.Replicas == nil {
		goes := v != nil && v.Reason == v1alpha1.ReasonOlderPolicy
		return Actions{RemoveAutoscaler: goes, RemoveScaledObject: goes}
	}
	current := *o.Target.Replicas
	decided := current
	if decision != nil {
		decided = decision.Replicas // the current number while the backlog is unknown
	}
	off := Frozen(o) != nil
	switch {
	case o.Actuator.Type == v1alpha1.ActuatorKEDA:
		return planKEDA(o, current, decided, off)
	case o.kedaRemains():
		return Actions{RemoveScaledObject: true} // first: two autoscalers would stop each other
	case o.Actuator.Type == v1alpha1.ActuatorDirect:
		if o.CreatesChild() {
			decided = max(1, decided)
		}
		return Actions{RemoveAutoscaler: true, Replicas: changedReplicas(decided, current, off)}
	}
	var actions Actions
	switch {
	case !o.Target.MayHaveAutoscaler(p.Spec):
		actions.RemoveAutoscaler = true
	case !o.undecided(): // an autoscaler without a metric only reports errors
		actions.Autoscaler = HorizontalPodAutoscaler(p, o.Target)
		actions.Reapply = o.History.toleranceDue(o.Autoscaler, o.Now)
	}
	actions.Replicas = replicasBesideAutoscaler(current, decided, off)
	actions.StatusFirst = actions.Replicas != nil && current == 0
	return actions
}

// undecided reports whether the policy has no decision and waits for the first answer from Pulsar, a second or two.
func (o Observed) undecided() bool {
	return errors.Is(o.Unknown, backlog.ErrNoData) && o.Policy.Status.DesiredReplicas == nil
}

// replicasBesideAutoscaler is the number that the controller writes although an autoscaler scales the target; nil for
// none. A change that starts or ends at zero is the controller's: at zero the autoscaler does nothing, and a wake does
// not wait for its sync.
func replicasBesideAutoscaler(current, decided int32, off bool) *int32 {
	if decided != 0 && current != 0 {
		return nil
	}
	return changedReplicas(decided, current, off)
}

// MayHaveAutoscaler is false for a target that is frozen out of bounds: a new autoscaler would change its replicas at
// once, and an existing one does so when the bounds change.
func (t *Target) MayHaveAutoscaler(spec v1alpha1.AutoscalingPolicySpec) bool {
	return t.Frozen == nil || (*t.Replicas >= policy.MinReplicas(spec) && *t.Replicas <= spec.MaxReplicas)
}

// changedReplicas is the number to write, nil for none.
func changedReplicas(decided, current int32, off bool) *int32 {
	if off || decided == current {
		return nil
	}
	return &decided
}

// SwitchedOff is the hold of a target of which the user set the replicas to 0 although minReplicas is more; nil if they
// did not. A target that scaled to zero is not switched off when minReplicas is raised: its last condition
// distinguishes the two.
func SwitchedOff(o Observed) *policy.Hold {
	least := policy.MinReplicas(o.Policy.Spec)
	if o.Target == nil || o.Target.Replicas == nil || *o.Target.Replicas != 0 || (least == 0 && !o.Target.NeverZero) {
		return nil
	}
	last := meta.FindStatusCondition(o.Policy.Status.Conditions, v1alpha1.ConditionScalingActive)
	if last != nil && last.Reason == v1alpha1.ReasonScaledToZero {
		return nil
	}
	return &policy.Hold{Reason: policy.HoldSwitchedOff, Message: fmt.Sprintf(
		"replicas of %s are 0 although minReplicas is %d, which switches scaling off: set them to 1 or more, or minReplicas "+
			"to 0", Name(o.Policy.Spec), max(1, least))}
}

// Frozen is why the replicas stay whatever the backlog; nil if they may change.
func Frozen(o Observed) *policy.Hold {
	switch {
	case o.Target == nil:
		return nil
	case o.Paused() != "":
		return &policy.Hold{Reason: v1alpha1.ReasonPaused, Message: o.Paused()}
	case o.Target.Frozen != nil:
		return o.Target.Frozen
	default:
		return cmp.Or(SwitchedOff(o), o.KeptReset())
	}
}

// Scales reports whether the policy changes the target's replicas.
func Scales(o Observed) bool {
	return o.Applies() && o.Violation == nil && Frozen(o) == nil
}

// Input is the input of a decision. The target has replicas: Check ensures it.
func Input(o Observed) policy.Input {
	in := policy.Input{
		Now: o.Now, Spec: o.Limited().Spec, CurrentReplicas: o.CurrentReplicas(), Unknown: o.Unknown, FreshFor: o.FreshFor,
		Rested: o.Rested, Pods: o.Pods, NeverZero: o.Target.NeverZero, Restarts: o.Target.Restarts(), Frozen: Frozen(o),
		Promised: o.Target.SubscriptionType, Partitions: o.Partitions,
		Own: o.OwnReplicas(o.Pods), Upstream: o.Upstream,
		Recreated: o.History.recreated(o.Target.UID), ManualRaise: manualRaise(o),
	}
	if o.Reading != nil {
		in.Reading = *o.Reading
	}
	if o.Actuator.Lag != nil && o.Actuator.Type != v1alpha1.ActuatorDirect {
		in.Lag = o.Actuator.Lag.Duration
	}
	return in
}

// Waiting reports whether a policy with a decision waits for its first answer from Pulsar, after a change of the leader
// or of its topics. The status is not written for that second or two, which saves a write for every policy. A changed
// spec is reported at once, since a slow Pulsar may take minutes.
func (o Observed) Waiting() bool {
	return o.Violation == nil && o.Paused() == "" && errors.Is(o.Unknown, backlog.ErrNoData) &&
		o.Policy.Status.DesiredReplicas != nil && o.Policy.Status.ObservedGeneration == o.Policy.Generation
}

// Subscription is the subscription to read and to decide on; nil if the target is missing or cannot be scaled. With a
// conflicting autoscaler the status still shows decisions.
func (o Observed) Subscription() *backlog.Subscription {
	if o.NothingToDecide() {
		return nil
	}
	return &o.Target.Subscription
}

// OwnReplicas is the number of replicas of the target that may consume: its running pods, which include terminating
// ones and those of a rollout, or else its replicas. Nil for a target without spec.subscription: the names of other
// consumers identify them.
func (o Observed) OwnReplicas(pods *policy.Pods) *int32 {
	switch {
	case o.Policy.Spec.Subscription == nil || o.Target == nil || o.Target.Replicas == nil:
		return nil
	case pods != nil && pods.Running != nil:
		return pods.Running
	case o.Target.Reported != nil:
		return new(max(*o.Target.Replicas, *o.Target.Reported))
	default:
		return o.Target.Replicas
	}
}

// NothingToDecide reports whether no target can be scaled.
func (o Observed) NothingToDecide() bool {
	return o.Violation != nil && o.Violation.Condition == v1alpha1.ConditionTargetFound
}
