// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

// Trigger is the decoded metadata of a trigger of type external or external-push. It is comparable: equal triggers of
// one ScaledObject have equal results.
type Trigger struct {
	// Object is the ScaledObject.
	Object types.NamespacedName
	// Subject is what is measured, or the policy.
	Subject Subject
	// Strategy is empty for the decision of a policy. For a policy it is one of its spec.strategies other than Capacity,
	// with its threshold.
	Strategy v1alpha1.StrategyType
	// Threshold for one replica: messages (BacklogPerReplica), messages/s (RatePerReplica) or percent (Utilization); 0 if
	// the policy has it.
	Threshold float64
	// ActivationMessages is how many ready messages do not activate the trigger; for strategies with a threshold.
	ActivationMessages int64
}

// Subject is what is measured; exactly one of Policy, Target, Component and Topics is set. It is comparable.
type Subject struct {
	// Namespace of the ScaledObject, in which Policy and Target are.
	Namespace string
	// Policy is the name of an AutoscalingPolicy.
	Policy string
	// Target is an object that runs instances.
	Target Target
	// Component is a function of a function worker.
	Component Component
	// Topics are complete names (persistent://tenant/namespace/topic), sorted and separated by commas; Subscription is the
	// subscription on them.
	Topics, Subscription string
	// Connection names the scaler's connection to Pulsar for Component and Topics; empty for its own.
	Connection string
}

// Target names an object of Kubernetes: kind Function, Sink, Source or StatefulSet.
type Target struct{ Kind, Name string }

// Component names a function of a function worker.
type Component struct {
	Kind                    function.Kind
	Tenant, Namespace, Name string
}
