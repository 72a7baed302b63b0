// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Health reads the health of the pods of a workload, or of a selector; or why it is unknown.
type Health interface {
	Health(workload backlog.Object) (policy.Pods, error)
	Selected(namespace, selector string) (policy.Pods, error)
}

// measure reads the store and the health of the pods; nothing without a subscription. Topics at rest are polled less
// often.
func (o observer) measure(observed plan.Observed, pace backlog.Pace) plan.Measured {
	subscription := observed.Subscription()
	if subscription == nil {
		return plan.Measured{}
	}
	measured := plan.Measured{PollInterval: o.config.PollInterval, Pods: o.podHealth(observed.Subject)}
	if pace == backlog.AtRest {
		measured.Rested = max(0, backlog.RestInterval-o.config.PollInterval)
	}
	reading, err := o.config.Store.Read(*subscription, observed.Now)
	if err != nil {
		measured.Unknown = err
		return measured
	}
	measured.Reading = &reading
	observed.Measured = measured
	if plan.Input(observed).SubscriptionType() == backlog.Failover {
		// Replicas of the other types share all partitions: no need to list the 1000 of a topic.
		if partitions, err := o.config.Store.Partitions(*subscription, observed.Now); err == nil {
			measured.Partitions = partitions // an error: gone since it was read, the next reconcile reports why
		}
	}
	return measured
}

// podHealth of the target; nil while it is unknown, which the watch of pods logs. The StatefulSet shows rollouts.
func (o observer) podHealth(subject plan.Subject) *policy.Pods {
	var pods *policy.Pods
	if seen, err := o.observePods(subject); err == nil {
		pods = seen
	}
	if subject.Target.Updating {
		if pods == nil {
			pods = &policy.Pods{}
		}
		pods.Updating = true
	}
	return pods
}

// observePods of the target; nil if it has none or pods are not read.
func (o observer) observePods(subject plan.Subject) (*policy.Pods, error) {
	ref, namespace := subject.Target.Ref, subject.Policy.Namespace
	var seen policy.Pods
	var err error
	switch {
	case o.config.Pods == nil || ref.Name == "": // a component of a function worker has no pods
		return nil, nil //nolint:nilnil // none is an answer
	case subject.Target.PodSelector != "":
		seen, err = o.config.Pods.Selected(namespace, subject.Target.PodSelector)
	case subject.Policy.Spec.Subscription != nil && !target.RunsInstances(ref):
		return nil, nil //nolint:nilnil // it does not say which they are
	default:
		seen, err = o.config.Pods.Health(backlog.Object{Kind: ref.Kind, Namespace: namespace, Name: ref.Name})
	}
	return &seen, err
}
