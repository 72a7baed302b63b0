// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Subscription is what the replicas of a target consume.
//
// +kubebuilder:validation:XValidation:rule="has(self.topics) != has(self.topicsPattern)",message="exactly one of topics and topicsPattern must be set"
type Subscription struct {
	// topics are the topics that each replica consumes, from 1 to 100, each with tenant and namespace, such as
	// persistent://shop/orders/new or shop/orders/new. A partitioned topic includes all its partitions. A scalable topic
	// of Pulsar 5 is topic://shop/orders/new; it needs strategy BacklogPerReplica. Set exactly one of topics and
	// topicsPattern.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Topics []TopicName `json:"topics,omitempty"`
	// topicsPattern is a regular expression for the topics of one namespace, as in topicsPattern of a Pulsar consumer,
	// such as persistent://shop/orders/eu-.*, up to 1024 bytes. Tenant and namespace are literal; the expression after
	// them has the syntax of RE2 and no slash.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^(persistent://)?[-=:._A-Za-z0-9]+/[-=:._A-Za-z0-9]+/[^/]+$')",message="topicsPattern must be persistent://tenant/namespace/expression, with no slash within the expression"
	TopicsPattern string `json:"topicsPattern,omitempty"`
	// name is the name of the subscription, as the consumers use it, from 1 to 253 bytes. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// type is the subscription type that the replicas use: Shared, Key_Shared, Failover, Exclusive or Stream. With
	// Failover at most one replica per partition gets messages. Exclusive needs maxReplicas 1. Of a scalable topic,
	// QueueConsumers are Shared and StreamConsumers are Stream, of which 64 get messages. Default: Shared.
	// +optional
	// +kubebuilder:default=Shared
	Type SubscriptionType `json:"type,omitempty"`
	// consumersPerReplica is the number of consumers that each replica opens on each topic, from 1 to 1000. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	ConsumersPerReplica int32 `json:"consumersPerReplica,omitempty"`
}

// TopicName is tenant/namespace/topic, with persistent:// or topic:// or nothing before it.
//
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule="self.matches('^((persistent|topic)://)?[-=:._A-Za-z0-9]+/[-=:._A-Za-z0-9]+/[^/ \\t\\n]+$')",message="a topic must be persistent://tenant/namespace/topic, topic://tenant/namespace/topic or tenant/namespace/topic"
type TopicName string

// SubscriptionType is a subscription type of Pulsar.
//
// +kubebuilder:validation:Enum=Shared;Key_Shared;Failover;Exclusive;Stream
type SubscriptionType string

// The subscription types, as Pulsar spells them.
const (
	SubscriptionShared    SubscriptionType = "Shared"
	SubscriptionKeyShared SubscriptionType = "Key_Shared"
	SubscriptionFailover  SubscriptionType = "Failover"
	SubscriptionExclusive SubscriptionType = "Exclusive"
	SubscriptionStream    SubscriptionType = "Stream"
)
