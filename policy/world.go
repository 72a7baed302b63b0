// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// World is what was gathered about one policy, before anything is decided or written.
type World struct {
	Policy *v1alpha1.AutoscalingPolicy
	// Target is nil when it does not exist.
	Target *Target
	// Unsupported is why the kind of the target cannot be scaled; empty when it can.
	Unsupported string
	// Rivals are other autoscalers on the same target or on what the target owns.
	Rivals []Rival
	// Sharers are other objects that consume the target's subscription, such as "Function media/crop", sorted.
	Sharers []string
	// OlderPolicy is the name of an older policy on the same target; empty when there is none.
	OlderPolicy string
	// Autoscaler is our HorizontalPodAutoscaler as it is; nil when it does not exist.
	Autoscaler *autoscalingv2.HorizontalPodAutoscaler
}

// Target is what a policy scales, as its own fields say.
type Target struct {
	Ref v1alpha1.CrossVersionObjectReference
	// Replicas is spec.replicas; nil when the field is absent, which the scale subresource needs.
	Replicas *int32
	// Subscription that its replicas share.
	Subscription backlog.Subscription
	// SubscriptionType is how the replicas subscribe by the target's fields.
	SubscriptionType backlog.SubscriptionType
	// Component is what the replicas call themselves to Pulsar: tenant/namespace/name.
	Component string
	// NeverAcknowledges is true for a window function that leaves messages in the backlog for ever.
	NeverAcknowledges bool
	// Invalid is why its inputs or its Pulsar cluster cannot be told; empty when they can.
	Invalid string
	// OwnAutoscaler is true when the target's operator makes an autoscaler of its own (spec.maxReplicas of a Function).
	OwnAutoscaler bool
	// MeshOwner is the FunctionMesh that controls the target and sets its replicas back; empty when there is none.
	MeshOwner string
	// Unmanaged is true when the operator was told to leave the target alone, so that scaling it has no effect.
	Unmanaged bool
}

// Rival is another autoscaler that writes the same replicas.
type Rival struct {
	Kind, Name string
	// TargetKind and TargetName are what it scales: our target or the StatefulSet behind it.
	TargetKind, TargetName string
}
