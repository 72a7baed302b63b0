// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Health says how the pods of a workload are, such as those of Function/media/resize, or those that a selector selects;
// or why that is unknown.
type Health interface {
	Health(workload string) (policy.Pods, error)
	Selected(namespace, selector string) (policy.Pods, error)
}

// input is what a decision rests on, all of it from the cache.
func (o observer) input(observed plan.Observed, subscription backlog.Subscription, now time.Time) policy.Input {
	pods := o.podHealth(observed)
	in := policy.Input{
		Now: now, Spec: observed.Policy.Spec, CurrentReplicas: *observed.Target.Replicas, // Check made sure of it
		FreshFor: freshIntervals * o.pollInterval, Pods: pods, NeverZero: observed.Target.NeverZero,
		Restarts: observed.Target.Restarts(), Frozen: plan.Frozen(observed), Promised: observed.Target.SubscriptionType,
		Own: observed.OwnReplicas(pods),
	}
	in.Reading, in.Unknown = o.store.Read(subscription, now)
	if in.Unknown != nil && in.CurrentReplicas == 0 {
		in.ReadyAtLeast = o.store.ReadyAtLeast(subscription, now)
	}
	if in.Unknown == nil && in.SubscriptionType() == backlog.Failover {
		in.Partitions = o.partitions(subscription, now)
	}
	return in
}

// partitions of a Failover subscription, of which each has one active consumer. With other types replicas share all,
// and a topic of 1000 partitions would be listed for nothing. What Read sums up Partitions knows of each, so nothing
// more is tracked for it.
func (o observer) partitions(subscription backlog.Subscription, now time.Time) []backlog.PartitionReading {
	partitions, err := o.store.Partitions(subscription, now)
	if err != nil {
		return nil // gone since it was read: the next reconcile says why
	}
	return partitions
}

// podHealth of the target; nil while they are unknown, which the watch of pods logs. That they are being replaced the
// StatefulSet knows as well.
func (o observer) podHealth(observed plan.Observed) *policy.Pods {
	var pods *policy.Pods
	if seen, err := o.seePods(observed); err == nil {
		pods = seen
	}
	if observed.Target.Updating {
		if pods == nil {
			pods = &policy.Pods{}
		}
		pods.Updating = true
	}
	return pods
}

// seePods of the target; nil where it has none, or they are left alone.
func (o observer) seePods(observed plan.Observed) (*policy.Pods, error) {
	ref, namespace := observed.Target.Ref, observed.Policy.Namespace
	var seen policy.Pods
	var err error
	switch {
	case o.pods == nil || ref.Name == "": // what a worker runs has none
		return nil, nil //nolint:nilnil // none is an answer
	case observed.Target.PodSelector != "":
		seen, err = o.pods.Selected(namespace, observed.Target.PodSelector)
	case observed.Policy.Spec.Subscription != nil && !target.RunsInstances(ref):
		return nil, nil //nolint:nilnil // it does not say which they are
	default:
		seen, err = o.pods.Health(target.WorkloadKey(ref.Kind, namespace, ref.Name))
	}
	return &seen, err
}
