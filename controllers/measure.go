// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
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

// measure reads the store and the health of the pods; nothing where there is no target to decide for.
func (o observer) measure(observed plan.Observed) plan.Measured {
	subscription := observed.Subscription()
	if subscription == nil {
		return plan.Measured{}
	}
	measured := plan.Measured{FreshFor: freshIntervals * o.pollInterval, Pods: o.podHealth(observed)}
	reading, err := o.store.Read(*subscription, observed.Now)
	if err != nil {
		measured.Unknown = err
		return measured
	}
	measured.Reading = &reading
	observed.Measured = measured
	if plan.Input(observed).SubscriptionType() == backlog.Failover {
		// With other types replicas share all partitions, and a topic of 1000 would be listed for nothing.
		if partitions, err := o.store.Partitions(*subscription, observed.Now); err == nil {
			measured.Partitions = partitions // else gone since it was read: the next reconcile says why
		}
	}
	return measured
}

// podHealth of the target; nil while it is unknown, which the watch of pods logs. The StatefulSet knows too that pods
// are being replaced.
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
