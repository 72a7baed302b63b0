// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Observed is what was read about one policy, before anything is decided or written.
type Observed struct {
	Now    time.Time
	Policy *v1alpha1.AutoscalingPolicy
	// Measured is what is known of the backlog and of the replicas.
	Measured
	// History is what earlier reconciles of the policy wrote.
	History History
	// Writer of the target's replicas; nil where it was not looked up, as where they did not change.
	Writer *WriterLookup
	// Violation is what Check finds; nil for nothing.
	Violation *Violation
	// Actuator that Choose chooses.
	Actuator v1alpha1.ActuatorStatus
	// Capabilities of the cluster, as far as they are known.
	Capabilities Capabilities
	// Target is nil when it does not exist.
	Target *Target
	// Unsupported is why the kind of the target cannot be scaled; empty when it can.
	Unsupported string
	// Conflicting are other autoscalers on the same target or on what the target owns.
	Conflicting []ConflictingAutoscaler
	// Sharers are other objects that consume the target's subscription, such as "Function media/crop", sorted.
	Sharers []string
	// OlderPolicy is the name of a policy on the same target that takes precedence; empty when there is none.
	// OlderNames says that it does because a user wrote it, and an AutoscalingPolicySet made this one.
	OlderPolicy string
	OlderNames  bool
	// Restoring is the name of a policy on the same target that goes, and first restores what it took over; empty when
	// there is none.
	Restoring string
	// NameClash is an object for which Function Mesh would delete our HorizontalPodAutoscaler, as both have one name, such
	// as "Function pap-x"; empty when there is none.
	NameClash string
	// Autoscaler is our HorizontalPodAutoscaler as it is; nil when it does not exist.
	Autoscaler *autoscalingv2.HorizontalPodAutoscaler
	// ScaledObject is the one of our name as it is, and KEDAAutoscaler what KEDA made of it, under that name too; nil when
	// they do not exist. KEDA's goes some time after the ScaledObject.
	ScaledObject   *LiveScaledObject
	KEDAAutoscaler *autoscalingv2.HorizontalPodAutoscaler
	// OtherScaledObjects are those of others on what ours would scale, even where they are paused, sorted: KEDA admits
	// one.
	OtherScaledObjects []string
}

// Measured is what the store and the watch of pods know of a target.
type Measured struct {
	// Reading of the target's subscription; nil while it is unknown.
	Reading *backlog.Reading
	// Unknown is why there is no reading; nil where there is one, and where nothing is read.
	Unknown error
	// ReadyAtLeast are ready messages that are there although the reading is unknown; of a target at zero alone.
	ReadyAtLeast float64
	// Partitions of a Failover subscription, of which each has one active consumer; of other types nil.
	Partitions []backlog.PartitionReading
	// Pods of the target; nil while their health is unknown.
	Pods *policy.Pods
	// FreshFor is how old a reading may be to take replicas down on.
	FreshFor time.Duration
}

// Target is what a policy scales, as its own fields say.
type Target struct {
	// Ref is the object that runs the replicas: what the policy names, or the child of a FunctionMesh; zero for what a
	// function worker runs.
	Ref v1alpha1.ScaleTargetRef
	// Scaling is how a number of replicas gets to it.
	Scaling Scaling
	// Scaled are the objects that have the target's replicas: autoscalers on them are conflicting autoscalers. The
	// target's own is among them.
	Scaled []v1alpha1.ScaleTargetRef
	// UID changes when the target is deleted and recreated; empty where that is not told.
	UID string
	// Replicas is spec.replicas; nil when the field is absent, which the scale subresource needs.
	Replicas *int32
	// Reported is how many replicas its status, or that of its StatefulSet, says; nil where neither does. It is more
	// than Replicas while pods of a Deployment are replaced.
	Reported *int32
	// PodSelector selects its pods, as its scale subresource says it; empty where that is not told.
	PodSelector string
	// Subscription that its replicas share.
	Subscription backlog.Subscription
	// SubscriptionType is how the replicas subscribe by the target's fields.
	SubscriptionType backlog.SubscriptionType
	// Component is what the replicas call themselves to Pulsar: tenant/namespace/name.
	Component string
	// NeverAcknowledges is true for a window function that leaves messages in the backlog for ever.
	NeverAcknowledges bool
	// NeverZero is true for what needs a replica although nothing waits: batch sources, and what a worker runs.
	NeverZero bool
	// Invalid is why its inputs or its Pulsar cluster cannot be told; empty when they can.
	Invalid string
	// InvalidReason is the reason of the condition then; empty for ReasonTargetInvalid.
	InvalidReason string
	// OwnAutoscaler is true when the target's operator makes an autoscaler of its own: MaxReplicas is its
	// spec.maxReplicas.
	OwnAutoscaler bool
	MaxReplicas   *int32
	// MeshOwner is the FunctionMesh that controls the target and sets its replicas back; empty when there is none, or when
	// the policy scales it through the mesh.
	MeshOwner string
	// Owner is what controls a StatefulSet or Deployment that is to be scaled, such as "Function resize"; empty when
	// nothing does.
	Owner string
	// Unmanaged is true when the operator was told to leave the target alone, so that scaling it has no effect.
	Unmanaged bool
	// UnmanagedBy is the object that says so, such as "FunctionMesh etl", where it may be another than Ref.
	UnmanagedBy string
	// Stopped is true for a function of a worker that the user stopped.
	Stopped bool
	// Updating says that its pods are being replaced by those of a new revision.
	Updating bool
	// Frozen is why its replicas have to stay as they are for now; nil when they may change.
	Frozen *policy.Hold
	// Disturbances are what makes a change of replicas restart those that run, or changes what is learned of them.
	Disturbances []Disturbance
}

// Disturbance is a reason and a message with the fix, of condition ScalesWithoutRestart.
type Disturbance struct {
	Reason, Message string
	// Restarts says that each change of the number of replicas restarts all that run.
	Restarts bool
}

// Scaling is how a number of replicas gets to a target.
type Scaling int

// The ways.
const (
	// BySubresource is the scale subresource of the target itself.
	BySubresource Scaling = iota
	// ByMesh is a patch of its entry in a FunctionMesh.
	ByMesh
	// ByWorker is the REST API of a function worker.
	ByWorker
)

// ConflictingAutoscaler is another autoscaler that writes the same replicas.
type ConflictingAutoscaler struct {
	Kind, Name string
	// TargetKind and TargetName are what it scales: our target or the StatefulSet behind it.
	TargetKind, TargetName string
	// Owner is what controls it, such as "Function resize" or "ScaledObject resize"; empty when nothing does.
	Owner string
	UID   types.UID
	// Leaving says that it is about to be deleted: its owner is a ScaledObject that is paused, or a policy that goes.
	Terminating bool
	// Manifest is what it takes to make it again; empty where that is more than a status can hold, or was not asked for.
	Manifest v1alpha1.Manifest
}
