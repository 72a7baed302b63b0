// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AutoscalingPolicy keeps the messages of a Pulsar Function, Sink or batch Source within a latency objective at the
// least replicas.
//
// The controller reads the target's subscription from Pulsar, decides a number of replicas, and hands that number to
// a HorizontalPodAutoscaler of its own, which scales the target; or writes it itself, where that cannot be.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.currentReplicas,selectorpath=.status.selector
// +kubebuilder:resource:path=autoscalingpolicies,shortName=pap,categories=all
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.target`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Backlog",type=integer,JSONPath=`.status.signals.readyMessages`
// +kubebuilder:printcolumn:name="Wait",type=string,JSONPath=`.status.signals.wait`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredReplicas`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.currentReplicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Min",type=integer,priority=1,JSONPath=`.spec.minReplicas`
// +kubebuilder:printcolumn:name="Max",type=integer,priority=1,JSONPath=`.spec.maxReplicas`
// +kubebuilder:printcolumn:name="Rate",type=string,priority=1,JSONPath=`.status.signals.publishRate`
// +kubebuilder:printcolumn:name="Capacity",type=string,priority=1,JSONPath=`.status.capacity.messagesPerSecond`
// +kubebuilder:printcolumn:name="±%",type=integer,priority=1,JSONPath=`.status.capacity.uncertaintyPercent`
// +kubebuilder:printcolumn:name="Actuator",type=string,priority=1,JSONPath=`.status.actuator.type`
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Decision",type=string,priority=1,JSONPath=`.status.decision.equation`
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

// AutoscalingPolicySpec is what the user wants. Only a target and maxReplicas are required.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas must not be larger than maxReplicas"
// +kubebuilder:validation:XValidation:rule="[has(self.scaleTargetRef), has(self.pulsarFunctionRef), has(self.targetSelector)].exists_one(is, is)",message="exactly one of scaleTargetRef, pulsarFunctionRef and targetSelector must be set"
// +kubebuilder:validation:XValidation:rule="has(self.scaleTargetRef) == has(oldSelf.scaleTargetRef) && has(self.pulsarFunctionRef) == has(oldSelf.pulsarFunctionRef)",message="the target cannot be changed; create another policy and delete this one"
// +kubebuilder:validation:XValidation:rule="!has(self.pulsarFunctionRef) || !has(self.minReplicas) || self.minReplicas > 0",message="minReplicas must be at least 1 with pulsarFunctionRef: the function worker does not run a function with no instance"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !has(self.targetSelector)",message="replicas cannot be set with targetSelector: each target has its own"
type AutoscalingPolicySpec struct {
	// scaleTargetRef names the object to scale, in the policy's own namespace. Supported: kinds Function, Sink and Source
	// (with batchSourceConfig) of compute.functionmesh.io/v1alpha1; a component of a FunctionMesh, with component; and a
	// StatefulSet of apps/v1 that Pulsar's own function worker made (pf-...). It cannot change: what was learned belongs
	// to the target.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="scaleTargetRef cannot be changed; create another policy and delete this one"
	ScaleTargetRef ScaleTargetRef `json:"scaleTargetRef,omitzero"`

	// pulsarFunctionRef names a function, sink or source that Pulsar's function worker runs as threads or processes of its
	// own: the policy changes its parallelism by the worker's REST API, which restarts all its instances at every change.
	// It cannot change.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="pulsarFunctionRef cannot be changed; create another policy and delete this one"
	PulsarFunctionRef PulsarFunctionRef `json:"pulsarFunctionRef,omitzero"`

	// targetSelector governs every object of one kind in the policy's namespace that has matching labels. Each has an
	// AutoscalingPolicy of its own, which the controller makes from this one and keeps. A policy that names an object
	// itself takes precedence, and of two selectors the older.
	// +optional
	TargetSelector *TargetSelector `json:"targetSelector,omitempty"`

	// replicas is what the policy's own scale subresource holds: the HorizontalPodAutoscaler of a target that has none
	// (a component of a FunctionMesh, a function of a worker) writes it, and the controller hands it on. Leave it unset.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas *int32 `json:"replicas,omitempty"`

	// minReplicas is the least number of replicas, 0 for none while there is nothing to do. Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MinReplicas *int32 `json:"minReplicas,omitempty"`

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

	// strategies say how replicas follow from what was measured, each type at most once; the largest answer wins, as with
	// the metrics of a HorizontalPodAutoscaler, and the guards and bounds hold for all. Default: one Capacity strategy,
	// which has nothing to tune.
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

	// mode says whether decisions are carried out (Auto), only shown in the status (Recommend) or not made at all (Off).
	// In the latter two replicas stay where they are. Default Auto.
	// +optional
	// +kubebuilder:default=Auto
	Mode Mode `json:"mode,omitempty"`

	// actuator is who writes the number of replicas: a HorizontalPodAutoscaler that the controller makes (HPA), KEDA by a
	// ScaledObject that the controller makes (KEDA), the controller itself (Direct), or the first of them that the cluster
	// allows (Auto). The choice and its reason are in status.actuator. Default Auto.
	// +optional
	// +kubebuilder:default=Auto
	Actuator Actuator `json:"actuator,omitempty"`

	// conflictPolicy says what becomes of another autoscaler on the same target. Refuse writes nothing and says in a
	// condition what stands in the way. TakeOver puts it away (removes Function Mesh's maxReplicas and the
	// HorizontalPodAutoscaler that follows from it, deletes a HorizontalPodAutoscaler, pauses a ScaledObject) and gives it
	// back when the policy is deleted or refuses again. Default Refuse.
	// +optional
	// +kubebuilder:default=Refuse
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`

	// pulsar says how to reach the Pulsar cluster of the target, where the target does not say it or the policy is to
	// differ.
	// +optional
	Pulsar *PulsarConnection `json:"pulsar,omitempty"`
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
	// messagesPerSecond is how many published messages per second one replica is for, above 0 and up to 10^12, such as
	// "100" or "2500m".
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

	// cooldownPeriodSeconds is how long nothing may arrive, be processed or be left before the last replica goes, with
	// minReplicas 0, from 0 to 86400 seconds: as cooldownPeriod of a ScaledObject. Default 300.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	CooldownPeriodSeconds *int32 `json:"cooldownPeriodSeconds,omitempty"`
}

// Mode says whether decisions are made and carried out.
//
// +kubebuilder:validation:Enum=Auto;Recommend;Off
type Mode string

// The modes.
const (
	// ModeAuto scales the target.
	ModeAuto Mode = "Auto"
	// ModeRecommend changes nothing and shows in the status what it would do.
	ModeRecommend Mode = "Recommend"
	// ModeOff changes nothing, asks Pulsar nothing and forgets nothing that was learned.
	ModeOff Mode = "Off"
)

// Actuator is who writes the number of replicas.
//
// +kubebuilder:validation:Enum=Auto;HPA;KEDA;Direct
type Actuator string

// The actuators.
const (
	// ActuatorAuto is the first of the others that the cluster allows, in their order.
	ActuatorAuto Actuator = "Auto"
	// ActuatorHPA is a HorizontalPodAutoscaler that follows the metric of the decision.
	ActuatorHPA Actuator = "HPA"
	// ActuatorKEDA is a ScaledObject of KEDA with a trigger that asks our scaler for the decision.
	ActuatorKEDA Actuator = "KEDA"
	// ActuatorDirect is the controller itself.
	ActuatorDirect Actuator = "Direct"
)

// ConflictPolicy says what becomes of another autoscaler on the same target.
//
// +kubebuilder:validation:Enum=Refuse;TakeOver
type ConflictPolicy string

// What may become of another autoscaler.
const (
	ConflictRefuse   ConflictPolicy = "Refuse"
	ConflictTakeOver ConflictPolicy = "TakeOver"
)
