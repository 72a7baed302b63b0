// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

// Trigger is what the metadata of a trigger of type external or external-push asks for. It is comparable: equal
// triggers of one ScaledObject have the same answers.
type Trigger struct {
	// Object is the ScaledObject.
	Object types.NamespacedName
	// Subject is what replicas follow from.
	Subject Subject
	// Strategy is how; empty for the decision of a policy. Of a policy it is one of its spec.strategies other than
	// Capacity, with its threshold.
	Strategy v1alpha1.StrategyType
	// Threshold is what one replica is for: messages (BacklogPerReplica), messages/s (RatePerReplica) or percent
	// (Utilization); 0 where a policy says it.
	Threshold float64
	// ActivationMessages is how many ready messages are too few to wake for; of the strategies with a threshold.
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
	// Component is what a function worker runs.
	Component Component
	// Topics are complete names (persistent://tenant/namespace/topic), sorted, with commas between them, and Subscription
	// is theirs.
	Topics, Subscription string
	// Connection names how the scaler reaches Pulsar for Component and Topics; empty for its own.
	Connection string
}

// Target names an object of Kubernetes: kind Function, Sink, Source or StatefulSet.
type Target struct{ Kind, Name string }

// Component names what a function worker runs.
type Component struct {
	Kind                    function.Kind
	Tenant, Namespace, Name string
}
