// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
)

// The type of a scenario file.
const (
	APIVersion = "bench.pulsar-autoscaler.io/v1alpha1"
	Kind       = "Scenario"
)

// Scenario is a benchmark.
type Scenario struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	// Pulsar is where topics are created. Required, except for a run on this machine.
	Pulsar Pulsar `json:"pulsar,omitzero"`
	// Load is published to each contender, and Messages describe its messages.
	Load     load.Shape    `json:"load"`
	Messages load.Messages `json:"messages,omitzero"`
	// Partitions of each input topic. Absent: the topics have no partitions.
	Partitions int `json:"partitions,omitempty"`
	// Function is what contenders scale. Required with contenders.
	Function Function `json:"function,omitzero"`
	// LatencyObjective is the time from when a message is due until its result is published. Later messages are late.
	// Absent: 1m.
	LatencyObjective metav1.Duration `json:"latencyObjective,omitzero"`
	// MinReplicas and MaxReplicas bound each contender. Absent: 1 and 10.
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	MaxReplicas int32  `json:"maxReplicas,omitempty"`
	// CooldownPeriod is how long contenders that scale by the backlog are idle before they scale to zero, in whole
	// seconds. Absent: 5m, the default of policies and of KEDA.
	CooldownPeriod metav1.Duration `json:"cooldownPeriod,omitzero"`
	// Contenders get the same load. The limits are those of the first one. Required, except for the load of a target.
	Contenders []Contender `json:"contenders,omitempty"`
	// Order is InTurn (the default) or SideBySide.
	Order Order `json:"order,omitempty"`
	// WatchAfter is how long replicas are watched after the load. Messages without a result by then count as late.
	// Absent: 1m.
	WatchAfter metav1.Duration `json:"watchAfter,omitzero"`
	Limits     Limits          `json:"limits,omitzero"`
	// Local has settings of a run on this machine that differ from those shipped.
	Local Local `json:"local,omitzero"`
}

// Metadata names the scenario.
type Metadata struct {
	Name string `json:"name"`
}

// Pulsar is a cluster, as the machine of the tool reaches it.
type Pulsar struct {
	AdminURL   string `json:"adminURL,omitempty"`
	ServiceURL string `json:"serviceURL,omitempty"`
	// Namespace of the topics, as tenant/namespace. Absent: public/default.
	Namespace string `json:"namespace,omitempty"`
	// InCluster are the addresses for Functions and autoscalers, if they differ.
	InCluster Addresses `json:"inCluster,omitzero"`
	// AuthSecret is the namespace/name of a Secret with credentials for the pods, in the keys of a Function's authSecret.
	// Runs copy it. Absent: pods do not authenticate.
	AuthSecret string `json:"authSecret,omitempty"`
}

// Addresses of a Pulsar cluster.
type Addresses struct {
	AdminURL   string `json:"adminURL,omitempty"`
	ServiceURL string `json:"serviceURL,omitempty"`
}

// Function is what each contender scales. It copies each message to its output after the service time.
type Function struct {
	// Kind is Function (the default), of Function Mesh, or Deployment.
	Kind string `json:"kind,omitempty"`
	// Image has a runner of Function Mesh and the example Function. That of a Deployment is the image of this tool.
	// Required, except for a run on this machine.
	Image string `json:"image,omitempty"`
	// ClassName and Jar are those of the example Function in the image.
	ClassName string `json:"className,omitempty"`
	Jar       string `json:"jar,omitempty"`
	// ServiceTime is the time to process a message.
	ServiceTime metav1.Duration `json:"serviceTime,omitzero"`
	// Stages is how many such Functions follow each other, each with what the one before publishes, and with an
	// autoscaler of its own. Results are late after as many times LatencyObjective. Absent: 1.
	Stages int `json:"stages,omitempty"`
	// ReceiverQueueSize is how many messages a replica prefetches. Absent: 1000, as Pulsar's clients do.
	ReceiverQueueSize int `json:"receiverQueueSize,omitempty" unit:"messages"`
	// CPU and Memory are requested for each replica. Absent: 200m and 256Mi.
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
}

// The kinds of scaled objects.
const (
	KindFunction   = "Function"
	KindDeployment = "Deployment"
)

// Order of contenders.
type Order string

// The orders.
const (
	InTurn     Order = "InTurn"
	SideBySide Order = "SideBySide"
)

// Contender is what scales a Function: exactly one of its kinds.
type Contender struct {
	Name string `json:"name"`
	// Policy is an AutoscalingPolicy.
	Policy *Policy `json:"policy,omitempty"`
	// KEDAPulsar is a ScaledObject with KEDA's own pulsar scaler.
	KEDAPulsar *KEDAPulsar `json:"kedaPulsar,omitempty"`
	// CPU is a HorizontalPodAutoscaler on CPU.
	CPU *CPU `json:"cpu,omitempty"`
	// Fixed replicas are not scaled.
	Fixed *Fixed `json:"fixed,omitempty"`
}

// Policy has the bounds and the objective of the scenario.
type Policy struct {
	// Actuator is HPA (the default) or KEDA.
	Actuator string `json:"actuator,omitempty"`
	// Forecast is the mode of spec.forecast. Absent: that of policies, Auto.
	Forecast string `json:"forecast,omitempty"`
}

// KEDAPulsar is a trigger with KEDA's defaults otherwise.
type KEDAPulsar struct {
	// Threshold is msgBacklogThreshold. Absent: 10, KEDA's default.
	Threshold int64 `json:"threshold,omitempty"`
}

// CPU is a utilization.
type CPU struct {
	// Percentage of the request. Absent: 80.
	Percentage int32 `json:"percentage,omitempty"`
}

// Fixed is a number of replicas.
type Fixed struct {
	Replicas int32 `json:"replicas"`
}

// Limits must not be exceeded by the first contender. Absent ones do not count.
type Limits struct {
	// MaxLateRatio is the share of late messages among all that were due, from 0 to 1.
	MaxLateRatio *float64 `json:"maxLateRatio,omitempty"`
	// MaxP99 is the 99th percentile of the latency.
	MaxP99 *metav1.Duration `json:"maxP99,omitempty"`
	// MaxReplicaHours are of all replicas, while they were watched.
	MaxReplicaHours *float64 `json:"maxReplicaHours,omitempty"`
	// MaxScaleChanges is how often spec.replicas may change.
	MaxScaleChanges *int `json:"maxScaleChanges,omitempty"`
	// MaxDuplicates is how many results may come twice.
	MaxDuplicates *int64 `json:"maxDuplicates,omitempty"`
}

// Local is a run on this machine.
type Local struct {
	// AdapterFlags and HPASyncPeriod make it faster, or slower, than what ships.
	AdapterFlags  []string        `json:"adapterFlags,omitempty"`
	HPASyncPeriod metav1.Duration `json:"hpaSyncPeriod,omitzero"`
	// StartTime of a replica until it consumes, as a pod with its JVM needs it. Absent: none.
	StartTime metav1.Duration `json:"startTime,omitzero"`
	// Outage of Pulsar's admin service, as autoscalers reach it. Absent: none.
	Outage Outage `json:"outage,omitzero"`
}

// Outage is a time without answers, since the load began.
type Outage struct {
	At  metav1.Duration `json:"at,omitzero"`
	For metav1.Duration `json:"for"`
}
