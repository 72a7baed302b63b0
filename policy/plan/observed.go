// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Observed is what the controller read about one policy before it writes, as four values, and what follows from them.
type Observed struct {
	Subject
	Measured
	Autoscalers
	Memory
	// Violation is what Check finds; nil for nothing.
	Violation *Violation
	// Actuator is the result of Choose.
	Actuator v1alpha1.ActuatorStatus
	// ScaledBy is what wrote the target's replicas, if they changed.
	ScaledBy string
}

// Measured is what the store and the watch of pods report about a target.
type Measured struct {
	// Reading of the target's subscription; nil while it is unknown.
	Reading *backlog.Reading
	// Unknown is why there is no reading; nil if there is one, or if none is wanted.
	Unknown error
	// Partitions of a Failover subscription, each with one active consumer; nil for other types.
	Partitions []backlog.PartitionReading
	// Pods of the target; nil while their health is unknown.
	Pods *policy.Pods
	// PollInterval is that of the topics. The reading may be older by Rested, since they were at rest.
	PollInterval, Rested time.Duration
	// Upstream is what the Functions that publish to its topics process; nil if that is not known of all topics.
	Upstream *policy.Outlook
}

// Memory is what earlier reconciles left, and who wrote the replicas since.
type Memory struct {
	// History is what earlier reconciles of the policy wrote.
	History History
	// Unset is what the autoscaler had to set at the last reconcile.
	Unset Unset
	// Writer of the target's replicas; nil if it was not looked up, such as for unchanged replicas.
	Writer *WriterLookup
	// Policies is the number of policies that the process decides for.
	Policies int
}

// Waiting reports whether a policy with a decision waits for its first answer from Pulsar, after a change of the leader
// or of its topics. The status is not written for that second or two, which saves a write for every policy. A changed
// spec is reported at once, since a slow Pulsar may take minutes.
func (o Observed) Waiting() bool {
	return o.Violation == nil && o.Paused() == "" && errors.Is(o.Unknown, backlog.ErrNoData) &&
		o.Policy.Status.DesiredReplicas != nil && o.Policy.Status.ObservedGeneration == o.Policy.Generation
}

// NothingToDecide reports whether no target can be scaled.
func (o Observed) NothingToDecide() bool {
	return o.Violation != nil && o.Violation.Condition == v1alpha1.ConditionTargetFound
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

// CurrentReplicas is the number that a decision continues from: the target's, or the number before a manifest reset it
// or the controller wrote 1 to have a component created. The target must have replicas.
func (o Observed) CurrentReplicas() int32 {
	if s := o.History.scales; s.instead != nil && s.at(*o.Target.Replicas) {
		return *s.instead
	}
	return *o.Target.Replicas
}

// KeptReset is the hold in a fight with the tool that resets the replicas; nil for none.
func (o Observed) KeptReset() *policy.Hold {
	if o.Target.Replicas == nil || !writesItself(o) {
		return nil
	}
	return o.History.scales.resets.hold(o.Now)
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
		return cmp.Or(o.SwitchedOff(), o.KeptReset())
	}
}

// Scales reports whether the policy changes the target's replicas.
func Scales(o Observed) bool {
	return o.Applies() && o.Violation == nil && Frozen(o) == nil
}

// CreatesChild reports whether the controller keeps at least Target.Least replicas in the entry, so that Function Mesh
// can create the child. It does so only where it scales.
func (o Observed) CreatesChild() bool {
	return o.OwnChildMissing() && Scales(o)
}
