// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AutoscalingPolicy keeps the messages of one Pulsar Function, Sink or batch Source within a latency objective at the least
// replicas.
//
// The controller reads the target's subscription from Pulsar, decides a number of replicas, and hands that number to
// a HorizontalPodAutoscaler of its own, which scales the target.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=autoscalingpolicies,shortName=pap,categories=all
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.scaleTargetRef.name`
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.spec.minReplicas`
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.maxReplicas`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.currentReplicas`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredReplicas`
// +kubebuilder:printcolumn:name="Backlog",type=integer,JSONPath=`.status.signals.readyMessages`
// +kubebuilder:printcolumn:name="Wait",type=string,JSONPath=`.status.signals.wait`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.status.decision.equation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AutoscalingPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants.
	// +required
	Spec AutoscalingPolicySpec `json:"spec"`
	// status is what was measured, decided and why.
	// +optional
	Status AutoscalingPolicyStatus `json:"status,omitempty"`
}

// AutoscalingPolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type AutoscalingPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AutoscalingPolicy `json:"items"`
}

// AutoscalingPolicySpec is what the user wants. Only scaleTargetRef and maxReplicas are required.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",message="minReplicas must not be larger than maxReplicas"
type AutoscalingPolicySpec struct {
	// scaleTargetRef names the object to scale, in the policy's own namespace. Supported: kinds Function, Sink and Source
	// (with batchSourceConfig) of compute.functionmesh.io/v1alpha1. It cannot change: what was learned belongs to the target.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="scaleTargetRef cannot be changed; create another policy and delete this one"
	ScaleTargetRef CrossVersionObjectReference `json:"scaleTargetRef"`

	// minReplicas is the least number of replicas, at least 1. Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MinReplicas int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the largest number of replicas.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxReplicas int32 `json:"maxReplicas"`

	// latencyObjective is how long a message may take from publish to done, from 1s to 24h. A loose objective
	// lets backlog be worked off with fewer replicas. Default 60s.
	// +optional
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="latencyObjective must be from 1s to 24h"
	LatencyObjective metav1.Duration `json:"latencyObjective,omitempty"`

	// strategies say how replicas follow from what was measured, each type at most once; the largest answer wins, as with the
	// metrics of a HorizontalPodAutoscaler, and the guards and bounds hold for all. Default: one Capacity strategy, which has
	// nothing to tune.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.all(one, self.exists_one(other, other.type == one.type))",message="strategies must not have the same type twice"
	// +kubebuilder:default={{type: Capacity}}
	Strategies []Strategy `json:"strategies,omitempty"`

	// behavior bounds how fast replicas change, with the field names of the HorizontalPodAutoscaler.
	// +optional
	Behavior *Behavior `json:"behavior,omitempty"`

	// mode says whether decisions are carried out (Enforce) or only shown in the status (Recommend). Default Enforce.
	// +optional
	// +kubebuilder:default=Enforce
	Mode Mode `json:"mode,omitempty"`

	// pulsar says how to reach the Pulsar cluster of the target, where the target does not say it or the policy is to differ.
	// +optional
	Pulsar *PulsarConnection `json:"pulsar,omitempty"`
}

// CrossVersionObjectReference names an object in the policy's namespace, as in a HorizontalPodAutoscaler.
type CrossVersionObjectReference struct {
	// apiVersion is the API group and version of the object, such as compute.functionmesh.io/v1alpha1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion"`
	// kind of the object, such as Function.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// StrategyType names a way to derive replicas from what was measured.
//
// +kubebuilder:validation:Enum=Capacity;BacklogPerReplica;RatePerReplica;Utilization
type StrategyType string

// The strategies.
const (
	// StrategyCapacity learns what one replica processes and holds enough replicas for the publish rate and for
	// working off the backlog within the latency objective.
	StrategyCapacity StrategyType = "Capacity"
	// StrategyBacklogPerReplica holds one replica for each so many ready messages, as KEDA and a plain
	// HorizontalPodAutoscaler do.
	StrategyBacklogPerReplica StrategyType = "BacklogPerReplica"
	// StrategyRatePerReplica holds one replica for each so many messages per second that are published, whatever waits.
	StrategyRatePerReplica StrategyType = "RatePerReplica"
	// StrategyUtilization holds enough replicas to keep each so busy on average, as a HorizontalPodAutoscaler does by CPU.
	// It needs instances that time their calls.
	StrategyUtilization StrategyType = "Utilization"
)

// Strategy is one way to derive replicas; the member named like the type holds its parameters.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'BacklogPerReplica') == has(self.backlogPerReplica)",message="backlogPerReplica must be set with type BacklogPerReplica, and only then"
// +kubebuilder:validation:XValidation:rule="(self.type == 'RatePerReplica') == has(self.ratePerReplica)",message="ratePerReplica must be set with type RatePerReplica, and only then"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Utilization') == has(self.utilization)",message="utilization must be set with type Utilization, and only then"
type Strategy struct {
	// type of the strategy.
	// +required
	Type StrategyType `json:"type"`
	// backlogPerReplica holds the parameters of type BacklogPerReplica.
	// +optional
	BacklogPerReplica *BacklogPerReplica `json:"backlogPerReplica,omitempty"`
	// ratePerReplica holds the parameters of type RatePerReplica.
	// +optional
	RatePerReplica *RatePerReplica `json:"ratePerReplica,omitempty"`
	// utilization holds the parameters of type Utilization; {} for the defaults.
	// +optional
	Utilization *Utilization `json:"utilization,omitempty"`
}

// BacklogPerReplica are the parameters of the strategy of that name.
type BacklogPerReplica struct {
	// messages is how many ready messages one replica may have waiting, from 1 to 10^12.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	Messages int64 `json:"messages"`
}

// RatePerReplica are the parameters of the strategy of that name.
type RatePerReplica struct {
	// messagesPerSecond is how many published messages per second one replica is for, above 0 and up to 10^12, such as "100"
	// or "2500m".
	// +required
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0')) && quantity(string(self)).compareTo(quantity('1T')) <= 0",message="messagesPerSecond must be above 0 and at most 10^12, such as 100 or 2500m"
	MessagesPerSecond resource.Quantity `json:"messagesPerSecond"`
}

// Utilization are the parameters of the strategy of that name.
type Utilization struct {
	// targetPercent of what a replica with work all the time is busy, from 1 to 100. A deviation of a tenth of it changes
	// nothing. Default 70.
	// +optional
	// +kubebuilder:default=70
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	TargetPercent int32 `json:"targetPercent,omitempty"`
}

// Behavior bounds how fast replicas change.
type Behavior struct {
	// scaleDown bounds the way down.
	// +optional
	ScaleDown *ScaleDownRules `json:"scaleDown,omitempty"`
}

// ScaleDownRules bound the way down.
type ScaleDownRules struct {
	// stabilizationWindowSeconds is how long the largest recent recommendation is held before replicas go down,
	// from 0 to 3600 seconds. Default 90.
	// +optional
	// +kubebuilder:default=90
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	StabilizationWindowSeconds *int32 `json:"stabilizationWindowSeconds,omitempty"`
}

// Mode says whether decisions are carried out.
//
// +kubebuilder:validation:Enum=Enforce;Recommend
type Mode string

// The modes.
const (
	// ModeEnforce scales the target through a HorizontalPodAutoscaler.
	ModeEnforce Mode = "Enforce"
	// ModeRecommend changes nothing and shows in the status what it would do.
	ModeRecommend Mode = "Recommend"
)

// PulsarConnection says how to reach a Pulsar cluster. What it says wins over the target's own; what it does not say, the
// target says.
type PulsarConnection struct {
	// adminURL is the cluster's admin service, such as http://pulsar-broker:8080. Its host must be among those that the
	// administrator of the adapter allows (--allowed-pulsar-hosts); it is shown the target's credentials. Default: the
	// webServiceURL of the target's own pulsarConfig.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/?#@]+/?$')",message="adminURL must be http://host:port or https://host:port, with no path and no credentials"
	AdminURL string `json:"adminURL,omitempty"`
	// authSecret is the name of a Secret in the policy's namespace with the credentials for reading: keys
	// clientAuthenticationPlugin and clientAuthenticationParameters, as in a target's own authSecret. Default: the target's own
	// credentials.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="authSecret must be the name of a Secret"
	AuthSecret string `json:"authSecret,omitempty"`
	// tlsConfig names the certificates that sign the brokers'. Default: the target's own tlsConfig or tlsSecret.
	// +optional
	TLSConfig *PulsarTLSConfig `json:"tlsConfig,omitempty"`
}

// PulsarTLSConfig names certificates to trust, in the words of a target's own tlsConfig.
type PulsarTLSConfig struct {
	// certSecretName is the name of a Secret in the policy's namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="certSecretName must be the name of a Secret"
	CertSecretName string `json:"certSecretName"`
	// certSecretKey is the key of it that has PEM certificates, such as ca.crt.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="certSecretKey must be a key of a Secret"
	CertSecretKey string `json:"certSecretKey"`
}
