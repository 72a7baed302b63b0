// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

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
