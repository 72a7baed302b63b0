// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Subscription is what replicas consume that do not say so themselves.
//
// +kubebuilder:validation:XValidation:rule="has(self.topics) != has(self.topicsPattern)",message="exactly one of topics and topicsPattern must be set"
type Subscription struct {
	// topics that each replica consumes, such as persistent://shop/orders/new or shop/orders/new: up to 100, each by its
	// tenant and namespace. Of a partitioned topic all partitions are meant.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Topics []TopicName `json:"topics,omitempty"`
	// topicsPattern is a regular expression of topics of one namespace, as Pulsar's clients take it, such as
	// persistent://shop/orders/eu-.*. Tenant and namespace are meant literally, and the syntax is RE2's.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^(persistent://)?[-=:._A-Za-z0-9]+/[-=:._A-Za-z0-9]+/[^/]+$')",message="topicsPattern must be persistent://tenant/namespace/expression, with no slash within the expression"
	TopicsPattern string `json:"topicsPattern,omitempty"`
	// name of the subscription, as the consumers give it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// type with which the replicas subscribe, in Pulsar's words: Shared, Key_Shared, Failover or Exclusive. With Failover
	// no more replicas than partitions get messages, and with Exclusive one does. Default Shared.
	// +optional
	// +kubebuilder:default=Shared
	Type SubscriptionType `json:"type,omitempty"`
	// consumersPerReplica is how many consumers each replica opens on each topic, from 1 to 1000. Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	ConsumersPerReplica int32 `json:"consumersPerReplica,omitempty"`
}

// TopicName is tenant/namespace/topic, with or without persistent:// before it.
//
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule="self.matches('^(persistent://)?[-=:._A-Za-z0-9]+/[-=:._A-Za-z0-9]+/[^/ \\t\\n]+$')",message="a topic must be persistent://tenant/namespace/topic or tenant/namespace/topic"
type TopicName string

// SubscriptionType is a subscription type of Pulsar.
//
// +kubebuilder:validation:Enum=Shared;Key_Shared;Failover;Exclusive
type SubscriptionType string

// The subscription types, as Pulsar spells them.
const (
	SubscriptionShared    SubscriptionType = "Shared"
	SubscriptionKeyShared SubscriptionType = "Key_Shared"
	SubscriptionFailover  SubscriptionType = "Failover"
	SubscriptionExclusive SubscriptionType = "Exclusive"
)
