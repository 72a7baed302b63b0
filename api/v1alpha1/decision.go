// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Decision explains a number of replicas.
type Decision struct {
	// time of the decision.
	// +required
	Time metav1.Time `json:"time"`
	// strategy is the one with the largest recommendation.
	// +optional
	Strategy StrategyType `json:"strategy,omitempty"`
	// equation is the calculation with its numbers.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Equation string `json:"equation,omitempty"`
	// cappedBy names the bound that changed the equation's result: minReplicas, maxReplicas or partitions.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	CappedBy string `json:"cappedBy,omitempty"`
	// hold is the reason that the result of the equation was not followed, such as a stabilization window or a broker that
	// does not answer; absent if it was followed.
	// +optional
	Hold *Hold `json:"hold,omitempty"`
	// passedGuards are the reasons for a hold that were tried, in this order, and did not hold; absent if the decision
	// wanted no other number of replicas.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	PassedGuards []string `json:"passedGuards,omitempty"`
}

// Hold is the reason that replicas were kept.
type Hold struct {
	// reason is a word in CamelCase.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
	// message explains the reason.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// Attainment is how many messages met latencyObjective within objectiveWindow.
type Attainment struct {
	// percent of the messages that met latencyObjective, rounded down.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent"`

	// budgetLeftPercent is how many percent of the messages that objectivePercent allows to be late were not yet. With 0,
	// decisions are those of a policy without objectivePercent.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	BudgetLeftPercent int32 `json:"budgetLeftPercent"`
}

// ExpectedLoad is a load that returns.
type ExpectedLoad struct {
	// time is when it is expected to begin.
	// +required
	Time metav1.Time `json:"time"`
	// within is how much earlier or later it may begin.
	// +required
	Within metav1.Duration `json:"within"`
	// publishRate is the arrival rate in messages per second that is expected then.
	// +required
	PublishRate Rate `json:"publishRate"`
	// foreseen is how many of the loads before, up to 40, began when they were expected.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=40
	Foreseen int32 `json:"foreseen"`
	// of is how many of the loads before, up to 40, were compared with what was expected.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=40
	Of int32 `json:"of"`
}

// ScaleDownResult is a scale-down of the target, by the policy or by another writer.
type ScaleDownResult struct {
	// time at which fewer replicas were found.
	// +required
	Time metav1.Time `json:"time"`
	// removedReplicas is the number of replicas that were removed.
	// +required
	// +kubebuilder:validation:Minimum=1
	RemovedReplicas int32 `json:"removedReplicas"`
	// redeliveredMessages were received by consumers that left within two minutes and not acknowledged by them, so that
	// Pulsar delivers them again; absent while unknown, as for Exclusive and Failover subscriptions.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RedeliveredMessages *int64 `json:"redeliveredMessages,omitempty"`
}

// ReplicaStart is the start of a replica, from the creation of its pod to its first consumer: the median of the last
// starts, by their total.
type ReplicaStart struct {
	// measuredAt is when the first consumer connected.
	// +required
	MeasuredAt metav1.Time `json:"measuredAt"`
	// replicas is the number of starts that it is the median of.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	Replicas int32 `json:"replicas"`
	// totalSeconds is the sum of the parts below, at most ten minutes.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=600
	TotalSeconds int32 `json:"totalSeconds"`
	// schedulingSeconds is the time until the pod has a node.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=600
	SchedulingSeconds int32 `json:"schedulingSeconds"`
	// initContainersSeconds is the time that the init containers ran; those of Function Mesh download the package.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=600
	InitContainersSeconds int32 `json:"initContainersSeconds"`
	// containersSeconds is the time from the node until all containers run, without initContainersSeconds, most of it the
	// pull of images.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=600
	ContainersSeconds int32 `json:"containersSeconds"`
	// packageSeconds is the time from the start of the containers to that of the JVM or interpreter: the download of the
	// package, if no init container has it; absent while unknown, such as for Go, and without the instances' metrics.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=600
	PackageSeconds *int32 `json:"packageSeconds,omitempty"`
	// programSeconds is the time from then to the first consumer: the start of the JVM or interpreter, and the connection
	// to Pulsar. It includes packageSeconds if that is unknown.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=600
	ProgramSeconds int32 `json:"programSeconds"`
}

// Capacity is what was learned about one replica.
type Capacity struct {
	// messagesPerSecond is the rate that one busy replica processes.
	// +required
	MessagesPerSecond Rate `json:"messagesPerSecond"`
	// uncertaintyPercent is one standard deviation of messagesPerSecond, in percent of it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	UncertaintyPercent *int32 `json:"uncertaintyPercent,omitempty"`
	// measuredBusyPercent is the busy time that replicas report while they always have work, in percent; absent while
	// unknown.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MeasuredBusyPercent *int32 `json:"measuredBusyPercent,omitempty"`
	// observations is the number of observations that it is learned from.
	// +required
	// +kubebuilder:validation:Minimum=1
	Observations int32 `json:"observations"`
	// learnedAt is when the last observation was made.
	// +required
	LearnedAt metav1.Time `json:"learnedAt"`
}
