// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Input is what a decision about the policy rests on. The target has replicas: Check made sure of it.
func Input(o Observed) policy.Input {
	in := policy.Input{
		Now: o.Now, Spec: o.Policy.Spec, CurrentReplicas: *o.Target.Replicas, Unknown: o.Unknown, FreshFor: o.FreshFor,
		Pods: o.Pods, NeverZero: o.Target.NeverZero, Restarts: o.Target.Restarts(), Frozen: Frozen(o),
		Promised: o.Target.SubscriptionType, ReadyAtLeast: o.ReadyAtLeast, Partitions: o.Partitions,
		Own:       o.OwnReplicas(o.Pods),
		Recreated: o.History.recreated(o.Target.UID), ManualRaise: manualRaise(o),
	}
	if o.Reading != nil {
		in.Reading = *o.Reading
	}
	return in
}

// Waiting says that the first answer of Pulsar is under way for a policy that has a decision already: a process that
// just took over, or a new input topic. What stands in the status stays in force for that second or two; an answer that
// fails has another reason, so this ends. Writing it down would turn every policy's status over at every change of
// the leader. A changed spec does not wait: a Pulsar that hangs may take minutes to be asked about every topic.
func (o Observed) Waiting() bool {
	return o.Violation == nil && errors.Is(o.Unknown, backlog.ErrNoData) &&
		o.Policy.Status.DesiredReplicas != nil && o.Policy.Status.ObservedGeneration == o.Policy.Generation
}

// Subscription to read and to decide on; nil while there is none: the mode is Paused, or the target is missing or
// cannot be scaled. A conflicting autoscaler is no reason: the status goes on showing what would be done.
func (o Observed) Subscription() *backlog.Subscription {
	if o.nothingToDecide() {
		return nil
	}
	return &o.Target.Subscription
}
