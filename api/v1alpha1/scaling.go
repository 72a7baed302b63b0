// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScalingSpec is how a target is scaled: an AutoscalingPolicySpec without the target. Only maxReplicas is required.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas must not be larger than maxReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.schedules) || self.schedules.all(s, (!has(s.minReplicas) || s.minReplicas <= self.maxReplicas) && (!has(s.maxReplicas) || !has(self.minReplicas) || s.maxReplicas >= self.minReplicas))",message="minReplicas and maxReplicas of schedules must be within minReplicas and maxReplicas of the policy, which schedules narrow"
// +kubebuilder:validation:XValidation:rule="!has(self.objectiveWindow) || has(self.objectivePercent)",message="objectiveWindow needs objectivePercent: without it all messages have to meet latencyObjective"
type ScalingSpec struct {
	// minReplicas is the lower limit of replicas, from 0 to 10000 and at most maxReplicas. With 0 the target scales to
	// zero while it is idle, see behavior.scaleDown.cooldownPeriodSeconds; targets of pulsarFunctionRef need at least 1.
	// Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the upper limit of replicas, from 1 to 10000. Required.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxReplicas int32 `json:"maxReplicas"`

	// schedules narrow minReplicas and maxReplicas at some times, such as business hours or a maintenance window; up to
	// 16. Of schedules that overlap, the largest minReplicas and the smallest maxReplicas hold, and maxReplicas takes
	// precedence. Those that are active are in status.limits. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(one, self.exists_one(other, other.name == one.name))",message="schedules must not have the same name twice"
	Schedules []Schedule `json:"schedules,omitempty"`

	// latencyObjective is how long a message may take from its publication until a replica has processed it: a duration
	// such as 30s, 5m or 24h, from 1s to 24h. A longer objective drains backlog with fewer replicas. Default: 60s.
	// +optional
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]*)?[smh]|[0-9]{1,8}([.][0-9]*)?ms)+$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="latencyObjective must be a duration from 1s to 24h",messageExpression="self.matches('^-?([0-9]+([.][0-9]*)?(s|m|h|ms))+$') ? 'latencyObjective must be from 1s to 24h' : 'latencyObjective must be a duration such as 30s, 5m or 24h'"
	LatencyObjective metav1.Duration `json:"latencyObjective,omitempty"`

	// objectivePercent is the share of messages that have to meet latencyObjective within objectiveWindow, from 90 to 100.
	// With 99, one message in a hundred may be late: while fewer are, strategy Capacity keeps less headroom, drains
	// backlog and adds replicas later, as if latencyObjective were up to twice as long. With 100 all have to meet it.
	// Below 90 set a longer latencyObjective. Default: 100.
	// +optional
	// +kubebuilder:validation:Minimum=90
	// +kubebuilder:validation:Maximum=100
	ObjectivePercent *int32 `json:"objectivePercent,omitempty"`

	// objectiveWindow is the time over which objectivePercent counts messages: a duration such as 30m or 4h, from 10m to
	// 24h. It needs objectivePercent. Default: 1h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]*)?[smh]|[0-9]{1,8}([.][0-9]*)?ms)+$') && duration(self) >= duration('10m') && duration(self) <= duration('24h')",message="objectiveWindow must be a duration from 10m to 24h",messageExpression="self.matches('^-?([0-9]+([.][0-9]*)?(s|m|h|ms))+$') ? 'objectiveWindow must be from 10m to 24h' : 'objectiveWindow must be a duration such as 30m or 4h'"
	ObjectiveWindow *metav1.Duration `json:"objectiveWindow,omitempty"`

	// strategies recommend a number of replicas, from 1 to 4 of them, each type at most once. The largest recommendation
	// is used, as with the metrics of a HorizontalPodAutoscaler. Holds and limits apply to all. Default: [{type:
	// Capacity}], which has nothing to tune.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.all(one, self.exists_one(other, other.type == one.type))",message="strategies must not have the same type twice"
	// +kubebuilder:default={{type: Capacity}}
	Strategies []Strategy `json:"strategies,omitempty"`

	// behavior limits how fast replicas change, with the field names of a HorizontalPodAutoscaler. Default: the
	// defaults of its fields.
	// +optional
	Behavior *Behavior `json:"behavior,omitempty"`

	// forecast is whether loads that return, such as those of cron jobs, and what Functions before this one in a pipeline
	// will send are expected. Default: the defaults of its fields.
	// +optional
	Forecast *Forecast `json:"forecast,omitempty"`

	// mode is whether decisions are made and applied. Auto scales the target. Recommend shows decisions in the status and
	// writes nothing to the target. Paused shows the backlog in the status, and decides and changes nothing. A change of
	// mode changes no replicas. Default: Auto.
	// +optional
	// +kubebuilder:default=Auto
	Mode Mode `json:"mode,omitempty"`

	// actuator is what writes the number of replicas. HPA: a HorizontalPodAutoscaler that the controller creates. KEDA: a
	// ScaledObject that the controller creates. Direct: the controller itself. Auto: the first of these that the cluster
	// supports, and Direct for an hour or two after the HorizontalPodAutoscaler lagged. A component of a FunctionMesh and
	// a pulsarFunctionRef need Auto or Direct. The choice and its reason are in status.actuator. Default: Auto.
	// +optional
	// +kubebuilder:default=Auto
	Actuator Actuator `json:"actuator,omitempty"`

	// conflictPolicy is what happens to another autoscaler on the same target. Refuse writes nothing, and a condition
	// names the other autoscaler. TakeOver suspends it: it removes Function Mesh's maxReplicas, deletes a
	// HorizontalPodAutoscaler, or pauses a ScaledObject. What was suspended is restored when the policy is deleted or set
	// to Refuse. Default: Refuse.
	// +optional
	// +kubebuilder:default=Refuse
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`

	// pulsar is how the controller reaches the Pulsar cluster of the target. Each field overrides the target's own
	// configuration. Default: the target's own configuration, else that of the adapter.
	// +optional
	Pulsar *PulsarConnection `json:"pulsar,omitempty"`
}

// Forecast is whether loads that return, and those of Functions before this one, are expected.
type Forecast struct {
	// mode is what an expected load does. Auto adds replicas before it begins, keeps or removes replicas until then, and
	// needs less headroom. Observe shows the expected load in status.forecast and changes nothing. Off expects none.
	// Default: Auto.
	// +optional
	// +kubebuilder:default=Auto
	Mode ForecastMode `json:"mode,omitempty"`
}

// ForecastMode is what an expected load does.
//
// +kubebuilder:validation:Enum=Auto;Observe;Off
type ForecastMode string

// The modes of a forecast.
const (
	ForecastAuto    ForecastMode = "Auto"
	ForecastObserve ForecastMode = "Observe"
	ForecastOff     ForecastMode = "Off"
)

// StrategyType is the type of a strategy.
//
// +kubebuilder:validation:Enum=Capacity;BacklogPerReplica;RatePerReplica;Utilization
type StrategyType string

// The strategies.
const (
	// StrategyCapacity learns what one replica processes, and keeps enough replicas for the publish rate and for draining
	// the backlog within the latency objective.
	StrategyCapacity StrategyType = "Capacity"
	// StrategyBacklogPerReplica keeps one replica for a given number of ready messages, as KEDA and a plain
	// HorizontalPodAutoscaler do.
	StrategyBacklogPerReplica StrategyType = "BacklogPerReplica"
	// StrategyRatePerReplica keeps one replica for a given rate of published messages, whatever the backlog.
	StrategyRatePerReplica StrategyType = "RatePerReplica"
	// StrategyUtilization keeps replicas at a given average utilization, as a HorizontalPodAutoscaler does by CPU. It
	// needs instances that report the time of their calls.
	StrategyUtilization StrategyType = "Utilization"
)

// Strategy recommends a number of replicas; the field named like its type has its parameters.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'BacklogPerReplica') == has(self.backlogPerReplica)",message="backlogPerReplica must be set with type BacklogPerReplica, and only then"
// +kubebuilder:validation:XValidation:rule="(self.type == 'RatePerReplica') == has(self.ratePerReplica)",message="ratePerReplica must be set with type RatePerReplica, and only then"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Utilization') == has(self.utilization)",message="utilization must be set with type Utilization, and only then"
type Strategy struct {
	// type is the type of the strategy. Capacity learns what one replica processes, and recommends replicas for the
	// publish rate and for draining the backlog within latencyObjective. BacklogPerReplica recommends one replica for a
	// number of ready messages, RatePerReplica for a rate of published messages. Utilization keeps replicas at an average
	// utilization; it needs instances that report the time of their calls.
	// +required
	Type StrategyType `json:"type"`
	// backlogPerReplica has the parameters of type BacklogPerReplica. Required with that type, and not allowed with
	// others.
	// +optional
	BacklogPerReplica *BacklogPerReplica `json:"backlogPerReplica,omitempty"`
	// ratePerReplica has the parameters of type RatePerReplica. Required with that type, and not allowed with others.
	// +optional
	RatePerReplica *RatePerReplica `json:"ratePerReplica,omitempty"`
	// utilization has the parameters of type Utilization; {} is the default. Required with that type, and not allowed with
	// others.
	// +optional
	Utilization *Utilization `json:"utilization,omitempty"`
}

// BacklogPerReplica are the parameters of the strategy of that name.
type BacklogPerReplica struct {
	// messages is the number of ready messages for one replica, from 1 to 10^12. Ready messages are the backlog without
	// delayed messages. Required.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	Messages int64 `json:"messages"`
}

// RatePerReplica are the parameters of the strategy of that name.
type RatePerReplica struct {
	// messagesPerSecond is the publish rate for one replica, in messages per second: a quantity above 0 and up to 10^12,
	// such as 100, "2.5" or "2500m". Required.
	// +required
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0')) && quantity(string(self)).compareTo(quantity('1T')) <= 0",message="messagesPerSecond must be above 0 and at most 10^12, such as 100 or 2500m"
	MessagesPerSecond resource.Quantity `json:"messagesPerSecond"`
}

// Utilization are the parameters of the strategy of that name.
type Utilization struct {
	// targetPercent is the average utilization of replicas to keep, in percent of a replica that has work all the time,
	// from 1 to 100. A deviation of up to a tenth changes no replicas. Default: 70.
	// +optional
	// +kubebuilder:default=70
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	TargetPercent int32 `json:"targetPercent,omitempty"`
}

// Mode is whether decisions are made and applied.
//
// +kubebuilder:validation:Enum=Auto;Recommend;Paused
type Mode string

// The modes.
const (
	// ModeAuto scales the target.
	ModeAuto Mode = "Auto"
	// ModeRecommend shows decisions in the status and writes nothing to the target.
	ModeRecommend Mode = "Recommend"
	// ModePaused shows the backlog in the status, and decides and changes nothing.
	ModePaused Mode = "Paused"
)

// IsAuto reports whether the mode is Auto, which is the default.
func (m Mode) IsAuto() bool { return m == "" || m == ModeAuto }

// Actuator is what writes the number of replicas.
//
// +kubebuilder:validation:Enum=Auto;HPA;KEDA;Direct
type Actuator string

// The actuators.
const (
	// ActuatorAuto is the first of the others that the cluster supports, in their order.
	ActuatorAuto Actuator = "Auto"
	// ActuatorHPA is a HorizontalPodAutoscaler that follows the metric of the decision.
	ActuatorHPA Actuator = "HPA"
	// ActuatorKEDA is a ScaledObject of KEDA with a trigger that gets the decision from our scaler.
	ActuatorKEDA Actuator = "KEDA"
	// ActuatorDirect is the controller itself.
	ActuatorDirect Actuator = "Direct"
)

// ConflictPolicy is what happens to another autoscaler on the same target.
//
// +kubebuilder:validation:Enum=Refuse;TakeOver
type ConflictPolicy string

// The conflict policies.
const (
	// ConflictRefuse writes nothing, and reports the other autoscaler.
	ConflictRefuse ConflictPolicy = "Refuse"
	// ConflictTakeOver suspends the other autoscaler, and restores it when the policy is deleted.
	ConflictTakeOver ConflictPolicy = "TakeOver"
)
