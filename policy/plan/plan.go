// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

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

// MayScale reports whether to write Replicas, by whether our autoscaler was applied. If not, an earlier one that runs
// does no harm: it does nothing at 0 replicas, and the controller writes only changes from and to 0 beside it.
func (a Actions) MayScale(o Observed, applied bool) bool {
	return a.Replicas != nil && (applied || a.Autoscaler != nil && o.Autoscaler != nil)
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

// Unretried is Unwritten in a status before the writes: what was refused or failed last has not succeeded yet.
func Unretried(o Observed, actions Actions) Result {
	result := Unwritten(o, actions)
	result.Violation = cmp.Or(result.Violation, o.Refused())
	if actions.Replicas != nil {
		result.ScaleFailed = o.History.scales.failed
	}
	return result
}

// Input is the input of a decision. The target has replicas: Check ensures it.
func Input(o Observed) policy.Input {
	in := policy.Input{
		Now: o.Now, Spec: o.Limited().Spec, CurrentReplicas: o.CurrentReplicas(), Unknown: o.Unknown,
		PollInterval: o.PollInterval, Rested: o.Rested, Pods: o.Pods, NeverZero: o.Target.NeverZero,
		Restarts: o.Target.Restarts(), Frozen: Frozen(o), Promised: o.Target.SubscriptionType, Partitions: o.Partitions,
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
		restoration, stuck := Restore(o.Subject, o.Autoscalers), KEDARemoval(o.Subject, o.Autoscalers, o.Actuator.Type)
		if stuck != nil && stuck.Reason != v1alpha1.ReasonScaledObjectStays {
			stuck = nil // no user has to act yet
		}
		return o.History.pacedHandover(o.Subject, Actions{Restore: &restoration, Violation: stuck})
	}
	step, problem := NextSuspension(o)
	if step != nil {
		return o.History.pacedHandover(o.Subject, Actions{Suspend: step})
	}
	o.Violation = problem
	actions := planWrites(o, decision)
	actions.Violation = problem
	return withoutRefused(o, actions)
}

// withoutRefused leaves out an apply that the API server would refuse again.
func withoutRefused(o Observed, actions Actions) Actions {
	refused := o.History.refusal.pausing(o.Subject, identity(o))
	if refused == nil || (actions.Autoscaler == nil && actions.ScaledObject == nil) ||
		(actions.ScaledObject != nil && ScaledObjectIsCurrent(o.ScaledObject, actions.ScaledObject)) {
		return actions
	}
	if !actions.MayScale(o, false) {
		actions.Replicas, actions.StatusFirst = nil, false
	}
	actions.Autoscaler, actions.Reapply, actions.ScaledObject, actions.Violation = nil, false, nil, refused
	return actions
}

// Refused is why the API server refused the last apply of our autoscaler; nil if it did not, or if the next is another.
func (o Observed) Refused() *Violation {
	if !o.History.refusal.same(o.Policy, identity(o)) {
		return nil
	}
	return &o.History.refusal.problem
}

// identity of the autoscaler that an apply changes, without its status, which changes at every sync.
func identity(o Observed) string {
	switch {
	case o.Actuator.Type == v1alpha1.ActuatorKEDA && o.ScaledObject != nil:
		return string(o.Actuator.Type) + " " + string(o.ScaledObject.UID)
	case o.Actuator.Type == v1alpha1.ActuatorHPA && o.Autoscaler != nil:
		return string(o.Actuator.Type) + " " + string(o.Autoscaler.UID)
	default:
		return string(o.Actuator.Type)
	}
}

// handoverStep names the takeover or restore of the actions.
func handoverStep(actions Actions) string {
	if actions.Suspend != nil {
		return actions.Suspend.String()
	}
	return "restore"
}

// pacedHandover leaves out a failed takeover or restore until its next attempt.
func (h History) pacedHandover(s Subject, actions Actions) Actions {
	if v := h.handover.pausing(s, handoverStep(actions)); v != nil {
		return Actions{Violation: v}
	}
	return actions
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
	case o.kedaRemains(o.Policy):
		return Actions{RemoveScaledObject: true} // first: two autoscalers would stop each other
	case o.Actuator.Type == v1alpha1.ActuatorDirect:
		if o.CreatesChild() {
			decided = max(o.Target.Least, decided)
		}
		return Actions{RemoveAutoscaler: true, Replicas: changedReplicas(decided, current, off)}
	}
	var actions Actions
	switch {
	case !o.MayHaveAutoscaler():
		actions.RemoveAutoscaler = true
	case !errors.Is(o.Unknown, backlog.ErrNoData) || o.Policy.Status.DesiredReplicas != nil:
		// Without a decision it waits for the first answer from Pulsar: an autoscaler without a metric only reports errors.
		actions.Autoscaler = HorizontalPodAutoscaler(p, o.Target)
		actions.Reapply = o.History.toleranceDue(o.Autoscaler, o.Now)
	}
	actions.Replicas = replicasBesideAutoscaler(current, decided, off)
	actions.StatusFirst = actions.Replicas != nil && current == 0
	return actions
}

// planKEDA changes one object at a time, since KEDA's webhook refuses two autoscalers. KEDA scales only from 0 to 1, so
// the controller writes the whole number itself. It writes the status first, in both directions: otherwise KEDA would
// revert the replicas to the last decision.
func planKEDA(o Observed, current, decided int32, off bool) Actions {
	live := o.OwnScaledObject(o.Policy)
	var actions Actions
	switch {
	case o.Autoscaler != nil:
		return Actions{RemoveAutoscaler: true}
	case !o.MayHaveScaledObject():
		actions.RemoveScaledObject = true
	case scaledObjectHasToWait(o):
		return Actions{}
	default:
		actions.ScaledObject = ScaledObject(o.Limited(), o.Target, o.Capabilities.Scaler)
	}
	actions.Replicas = replicasBesideAutoscaler(current, decided, off || live.Forbids(current, decided))
	served := o.Policy.Status.DesiredReplicas
	// The scaler reads the decision from the status.
	unserved := actions.ScaledObject != nil && live == nil && (served == nil || *served != decided)
	actions.StatusFirst = unserved || (actions.Replicas != nil && (current == 0 || *actions.Replicas == 0))
	return actions
}

// scaledObjectHasToWait reports whether to wait until the last ScaledObject is deleted with its autoscaler, or for the
// first decision: KEDA's behavior without an answer from the scaler is not predictable.
func scaledObjectHasToWait(o Observed) bool {
	live := o.OwnScaledObject(o.Policy)
	if live == nil {
		return o.KEDAAutoscaler != nil || (o.Unknown != nil && o.Policy.Status.DesiredReplicas == nil)
	}
	return live.DeletionTimestamp != nil
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

// changedReplicas is the number to write, nil for none.
func changedReplicas(decided, current int32, off bool) *int32 {
	if off || decided == current {
		return nil
	}
	return &decided
}
