// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScalingSpec says how a target is scaled: all of an AutoscalingPolicySpec but the target. Only maxReplicas is
// required.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas must not be larger than maxReplicas"
type ScalingSpec struct {
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
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]*)?[smh]|[0-9]{1,8}([.][0-9]*)?ms)+$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="latencyObjective must be a duration from 1s to 24h",messageExpression="self.matches('^-?([0-9]+([.][0-9]*)?(s|m|h|ms))+$') ? 'latencyObjective must be from 1s to 24h' : 'latencyObjective must be a duration such as 30s, 5m or 24h'"
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
// +kubebuilder:validation:Enum=Auto;Recommend;Paused
type Mode string

// The modes.
const (
	// ModeAuto scales the target.
	ModeAuto Mode = "Auto"
	// ModeRecommend changes nothing and shows in the status what it would do.
	ModeRecommend Mode = "Recommend"
	// ModePaused changes nothing, asks Pulsar nothing and forgets nothing that was learned.
	ModePaused Mode = "Paused"
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
