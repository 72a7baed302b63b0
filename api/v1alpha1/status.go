// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AutoscalingPolicyStatus is what was measured, decided and why. An absent field is unknown, never zero.
type AutoscalingPolicyStatus struct {
	// conditions of the policy, Ready first: Ready says that the autoscaler does its job and that what was decided runs,
	// ObjectiveMet whether messages meet latencyObjective and what keeps them from it, ScalingLimited which bound is in
	// force. TargetFound, BacklogKnown, AutoscalerApplied and ScalingActive are parts of Ready; SubscriptionVerified and
	// ScalesWithoutRestart warn.
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

	// desiredReplicas is the number last decided. It is what the metric pulsar_function_desired_replicas serves.
	// +optional
	DesiredReplicas *int32 `json:"desiredReplicas,omitempty"`

	// specReplicas is the target's spec.replicas as last seen: what it is asked to run.
	// +optional
	SpecReplicas *int32 `json:"specReplicas,omitempty"`

	// runningReplicas is how many replicas run, as last seen: pods with a container that runs, or what the target's
	// status reports. Absent where neither can be read.
	// +optional
	RunningReplicas *int32 `json:"runningReplicas,omitempty"`

	// actuator is what writes the number of replicas, and why.
	// +optional
	Actuator *ActuatorStatus `json:"actuator,omitempty"`

	// signals are the measurements that the last written decision rests on.
	// +optional
	Signals *Signals `json:"signals,omitempty"`

	// decision explains desiredReplicas.
	// +optional
	Decision *Decision `json:"decision,omitempty"`

	// capacity is what the controller learned about one replica.
	// +optional
	Capacity *Capacity `json:"capacity,omitempty"`

	// horizontalPodAutoscaler is the name of the HorizontalPodAutoscaler that this policy applies; absent where it has
	// none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	HorizontalPodAutoscaler string `json:"horizontalPodAutoscaler,omitempty"`

	// scaledObject is the name of the ScaledObject that this policy applies; absent where it has none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ScaledObject string `json:"scaledObject,omitempty"`

	// takenOver is what conflictPolicy TakeOver suspended, and what is restored.
	// +optional
	TakenOver *TakenOver `json:"takenOver,omitempty"`

	// checkpoint is what the controller resumes from after a restart, as of the last write of the status. It is no API:
	// its form changes without notice, and only the controller reads it.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Checkpoint string `json:"checkpoint,omitempty"`
}

// ActuatorStatus is who writes the number of replicas.
type ActuatorStatus struct {
	// type is HPA, KEDA or Direct.
	// +required
	Type Actuator `json:"type"`
	// reason for a person, such as why Auto did not choose a HorizontalPodAutoscaler.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// TakenOver is what stood in the way of the policy and was suspended for it.
type TakenOver struct {
	// maxReplicas of the target, which made Function Mesh run an autoscaler of its own.
	// +optional
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`
	// horizontalPodAutoscalers that were deleted, as the JSON of what is created again: name, labels, annotations and
	// spec.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	HorizontalPodAutoscalers []Manifest `json:"horizontalPodAutoscalers,omitempty"`
	// scaledObjects are the names of those that were paused.
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
	// coverage says which topics the sums leave out, so that they are lower bounds; absent when all are known.
	// +optional
	Coverage *Coverage `json:"coverage,omitempty"`
	// measuredAt is when the oldest of them was measured.
	// +required
	MeasuredAt metav1.Time `json:"measuredAt"`
	// readyMessages wait to be processed: the backlog without messages that are still delayed.
	// +optional
	ReadyMessages *int64 `json:"readyMessages,omitempty"`
	// discountedMessages of readyMessages do not count as work, since replicas were idle while they waited: messages that
	// are held, fail for ever, or are none; absent when all count.
	// +optional
	// +kubebuilder:validation:Minimum=1
	DiscountedMessages *int64 `json:"discountedMessages,omitempty"`
	// publishRate is in messages per second, over the window of the poll.
	// +optional
	PublishRate *Rate `json:"publishRate,omitempty"`
	// processRate is in messages per second: what the consumers finished.
	// +optional
	ProcessRate *Rate `json:"processRate,omitempty"`
	// consumers is the number of replicas that are connected and consuming.
	// +optional
	Consumers *int32 `json:"consumers,omitempty"`
	// wait is how long a message published now would wait: ready messages divided by what the replicas process.
	// +optional
	Wait *metav1.Duration `json:"wait,omitempty"`
}

// Coverage is how many of the topics are known, with all their partitions.
// +kubebuilder:validation:XValidation:rule="self.knownTopics < self.topics",message="knownTopics must be below topics, or leave coverage out"
type Coverage struct {
	// topics that count. A pattern without a listing counts as one.
	// +required
	// +kubebuilder:validation:Minimum=1
	Topics int32 `json:"topics"`
	// knownTopics is how many of them are known with all partitions.
	// +required
	// +kubebuilder:validation:Minimum=0
	KnownTopics int32 `json:"knownTopics"`
	// missing are up to 5 of the others, each with the reason.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=5
	Missing []MissingTopic `json:"missing,omitempty"`
}

// MissingTopic is a topic or pattern that is not known, or not with all partitions.
type MissingTopic struct {
	// name of the topic, or the pattern.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name"`
	// message says why, and how to fix it.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}

// Decision says how a number of replicas came about.
type Decision struct {
	// time of the decision.
	// +required
	Time metav1.Time `json:"time"`
	// strategy that asked for the most replicas.
	// +optional
	Strategy StrategyType `json:"strategy,omitempty"`
	// equation with its numbers, for a person to check.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Equation string `json:"equation,omitempty"`
	// cappedBy names the bound that changed the equation's result: minReplicas, maxReplicas or partitions.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	CappedBy string `json:"cappedBy,omitempty"`
	// hold is the reason why the equation's result was not followed, such as a stabilization window or a broker
	// that does not answer; absent when it was followed.
	// +optional
	Hold *Hold `json:"hold,omitempty"`
}

// Hold says why replicas were kept.
type Hold struct {
	// reason in CamelCase.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
	// message for a person.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// Capacity is what was learned about one replica.
type Capacity struct {
	// messagesPerSecond one replica processes when it is busy.
	// +required
	MessagesPerSecond Rate `json:"messagesPerSecond"`
	// uncertaintyPercent is one standard deviation of messagesPerSecond, in percent of it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	UncertaintyPercent *int32 `json:"uncertaintyPercent,omitempty"`
	// measuredBusyPercent is how busy replicas say they are when they have work all the time, in percent; absent while
	// that is unknown.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MeasuredBusyPercent *int32 `json:"measuredBusyPercent,omitempty"`
	// observations it rests on.
	// +required
	// +kubebuilder:validation:Minimum=1
	Observations int32 `json:"observations"`
	// learnedAt is when the last observation was made.
	// +required
	LearnedAt metav1.Time `json:"learnedAt"`
}
