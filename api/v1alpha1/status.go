// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AutoscalingPolicyStatus is what was measured and decided, and why. An absent field is unknown, never zero.
type AutoscalingPolicyStatus struct {
	// conditions of the policy. Ready is True if the autoscaler does its job and the decided replicas run, ObjectiveMet if
	// messages meet latencyObjective, and ScalingLimited if a bound limits the replicas. TargetFound, BacklogKnown,
	// AutoscalerApplied and ScalingActive are parts of Ready; SubscriptionVerified, ScalesWithoutRestart and
	// ObjectiveAchievable warn. Stalled is True after TargetFound or AutoscalerApplied has been False for a minute and
	// only a user can fix that, and absent otherwise: deployment tools fail on it, and wait for Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// target is what is scaled, such as Function/resize, FunctionMesh/etl:Function/resize or
	// function:public/default/resize.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Target string `json:"target,omitempty"`

	// desiredReplicas is the last decided number, which the metric pulsar_function_desired_replicas serves.
	// +optional
	DesiredReplicas *int32 `json:"desiredReplicas,omitempty"`

	// limits of replicas while schedules are active; absent while those of the spec hold.
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// specReplicas is the target's spec.replicas as last seen.
	// +optional
	SpecReplicas *int32 `json:"specReplicas,omitempty"`

	// runningReplicas is the number of replicas that run, as last seen: pods with a running container, or the number in
	// the target's status. Absent if neither can be read.
	// +optional
	RunningReplicas *int32 `json:"runningReplicas,omitempty"`

	// actuator is what writes the number of replicas, with the reason.
	// +optional
	Actuator *ActuatorStatus `json:"actuator,omitempty"`

	// signals are the measurements behind the last written decision.
	// +optional
	Signals *Signals `json:"signals,omitempty"`

	// decision explains desiredReplicas.
	// +optional
	Decision *Decision `json:"decision,omitempty"`

	// capacity is what the controller learned about one replica.
	// +optional
	Capacity *Capacity `json:"capacity,omitempty"`

	// forecast is the load that is expected next, as of the last written signals; absent while none is expected, and while
	// one is there.
	// +optional
	Forecast *ExpectedLoad `json:"forecast,omitempty"`

	// attainment is how many messages met latencyObjective within objectiveWindow, as of the last written signals; absent
	// without objectivePercent, and while it is unknown.
	// +optional
	Attainment *Attainment `json:"attainment,omitempty"`

	// start is where the time of a start of a replica goes; absent while latencyObjective leaves time for it, and while it
	// is unknown.
	// +optional
	Start *ReplicaStart `json:"start,omitempty"`

	// lastScaleDown is the last time that the target's replicas became fewer, and how many messages Pulsar delivers again.
	// +optional
	LastScaleDown *ScaleDownResult `json:"lastScaleDown,omitempty"`

	// horizontalPodAutoscaler is the name of the HorizontalPodAutoscaler that this policy applies; absent if it has none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	HorizontalPodAutoscaler string `json:"horizontalPodAutoscaler,omitempty"`

	// scaledObject is the name of the ScaledObject that this policy applies; absent if it has none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ScaledObject string `json:"scaledObject,omitempty"`

	// takenOver is what conflictPolicy TakeOver suspended, and will restore.
	// +optional
	TakenOver *TakenOver `json:"takenOver,omitempty"`

	// workingCheckpoint is the state that the controller resumes from after a restart, as of the last write of the status.
	// It is not an API: its form changes without notice, and only the controller reads it.
	// +optional
	// +kubebuilder:validation:MaxLength=6144
	WorkingCheckpoint string `json:"workingCheckpoint,omitempty"`
}

// Limits are minReplicas and maxReplicas as active schedules narrow them.
type Limits struct {
	// minReplicas is the lower limit now.
	// +required
	MinReplicas int32 `json:"minReplicas"`
	// maxReplicas is the upper limit now.
	// +required
	MaxReplicas int32 `json:"maxReplicas"`
	// schedules are the names of the active schedules.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Schedules []ScheduleName `json:"schedules"`
}

// ActuatorStatus is what writes the number of replicas.
type ActuatorStatus struct {
	// type is HPA, KEDA or Direct.
	// +required
	Type Actuator `json:"type"`
	// reason explains the choice, such as why Auto did not choose a HorizontalPodAutoscaler.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// lag is how long the autoscaler takes to set a decided number. Each measurement at most halves it, since some
	// decisions come just before a sync. It is at most 5 minutes, and absent without a measurement within an hour.
	// +optional
	Lag *metav1.Duration `json:"lag,omitempty"`
	// lagMeasuredAt is when the autoscaler last set a decided number.
	// +optional
	LagMeasuredAt *metav1.Time `json:"lagMeasuredAt,omitempty"`
	// directUntil is when Auto returns to the HorizontalPodAutoscaler, which lagged; absent while Auto does not avoid it.
	// +optional
	DirectUntil *metav1.Time `json:"directUntil,omitempty"`
}

// TakenOver is what was suspended for the policy.
type TakenOver struct {
	// maxReplicas of the target, with which Function Mesh runs its own autoscaler.
	// +optional
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`
	// horizontalPodAutoscalers that were deleted, as JSON to recreate them from: name, labels, annotations and spec.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	HorizontalPodAutoscalers []Manifest `json:"horizontalPodAutoscalers,omitempty"`
	// scaledObjects are the names of ScaledObjects that were paused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	ScaledObjects []ObjectName `json:"scaledObjects,omitempty"`
}

// Manifest is the JSON of an object.
//
// +kubebuilder:validation:MaxLength=16384
type Manifest string

// ObjectName is the name of an object.
//
// +kubebuilder:validation:MaxLength=253
type ObjectName string

// Signals are measurements of the target's subscription, summed over its topics and partitions.
type Signals struct {
	// coverage lists the topics that the sums leave out, so that they are lower bounds; absent if all are known.
	// +optional
	Coverage *Coverage `json:"coverage,omitempty"`
	// measuredAt is when the oldest signal was measured.
	// +required
	MeasuredAt metav1.Time `json:"measuredAt"`
	// readyMessages is the backlog without messages that are still delayed.
	// +optional
	ReadyMessages *int64 `json:"readyMessages,omitempty"`
	// discountedMessages is the part of readyMessages that does not count as work, since replicas were idle meanwhile:
	// messages that are held or always fail, and entries that are not messages; absent if all count.
	// +optional
	// +kubebuilder:validation:Minimum=1
	DiscountedMessages *int64 `json:"discountedMessages,omitempty"`
	// publishRate is the arrival rate in messages per second, over the rate window.
	// +optional
	PublishRate *Rate `json:"publishRate,omitempty"`
	// processRate is the rate in messages per second at which consumers finish messages.
	// +optional
	ProcessRate *Rate `json:"processRate,omitempty"`
	// consumers is the number of connected replicas.
	// +optional
	Consumers *int32 `json:"consumers,omitempty"`
	// usefulReplicas is the largest number of replicas that can have messages at once: with a Failover subscription one
	// for each partition, with Exclusive one. Absent if the subscription type has no such limit, or is unknown.
	// +optional
	// +kubebuilder:validation:Minimum=1
	UsefulReplicas *int32 `json:"usefulReplicas,omitempty"`
	// wait is how long a message published now would wait: ready messages divided by the rate that the replicas can
	// process.
	// +optional
	Wait *metav1.Duration `json:"wait,omitempty"`
}

// Coverage is the number of topics that are known, with all their partitions.
// +kubebuilder:validation:XValidation:rule="self.knownTopics < self.topics",message="knownTopics must be below topics, or leave coverage out"
type Coverage struct {
	// topics is the number of topics that count. A pattern without a listing counts as one.
	// +required
	// +kubebuilder:validation:Minimum=1
	Topics int32 `json:"topics"`
	// knownTopics is the number of these topics that are known with all partitions.
	// +required
	// +kubebuilder:validation:Minimum=0
	KnownTopics int32 `json:"knownTopics"`
	// missing lists up to 5 of the other topics, each with the reason.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=5
	Missing []MissingTopic `json:"missing,omitempty"`
}

// MissingTopic is a topic or pattern that is unknown in whole or in part.
type MissingTopic struct {
	// name of the topic or pattern.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name"`
	// message is the reason, with the fix.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}
