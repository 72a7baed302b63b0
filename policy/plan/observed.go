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

// Observed is what the controller read about one policy, before it decides or writes.
type Observed struct {
	Now    time.Time
	Policy *v1alpha1.AutoscalingPolicy
	// AllPaused is why all policies are paused; empty if they are not.
	AllPaused string
	// Limits of replicas while schedules are active; nil while those of the policy hold. BadSchedule is why a schedule
	// cannot be evaluated; nil if all can.
	Limits      *v1alpha1.Limits
	BadSchedule error
	// Policies is the number of policies that the process decides for.
	Policies int
	// Capabilities of the cluster, as far as they are known.
	Capabilities Capabilities
	// Target is nil when it does not exist.
	Target *Target
	// Unfit is why the target cannot be scaled, by its own fields and those of the policy; nil if it can.
	Unfit *Violation
	// Measured is the backlog and the state of the replicas, as far as known.
	Measured
	// Ours are the policy's own autoscalers, and Others what else scales or consumes.
	Ours
	Others
	// History is what earlier reconciles of the policy wrote.
	History History
	// Unset is what the autoscaler had to set at the last reconcile.
	Unset Unset
	// Writer of the target's replicas; nil if it was not looked up, such as for unchanged replicas.
	Writer *WriterLookup
	// ScaledBy is what wrote the target's replicas, if they changed.
	ScaledBy string
	// Violation is what Check finds; nil for nothing.
	Violation *Violation
	// Actuator is the result of Choose.
	Actuator v1alpha1.ActuatorStatus
}

// Paused is why nothing is decided or changed, although the backlog is measured; empty if decisions are made.
func (o Observed) Paused() string {
	if o.AllPaused == "" && o.Policy.Spec.Mode == v1alpha1.ModePaused {
		return "mode is Paused: the backlog is measured, and nothing is decided or changed"
	}
	return o.AllPaused
}

// Applies reports whether decisions are applied to the target.
func (o Observed) Applies() bool { return o.Policy.Spec.Mode.IsAuto() && o.Paused() == "" }

// Limited is the policy with the limits that hold now as its minReplicas and maxReplicas.
func (o Observed) Limited() *v1alpha1.AutoscalingPolicy {
	if o.Limits == nil {
		return o.Policy
	}
	p := *o.Policy
	p.Spec.MinReplicas, p.Spec.MaxReplicas = &o.Limits.MinReplicas, o.Limits.MaxReplicas
	return &p
}

// Ours are the autoscalers of the policy; nil if they do not exist.
type Ours struct {
	// Autoscaler is our HorizontalPodAutoscaler.
	Autoscaler *autoscalingv2.HorizontalPodAutoscaler
	// ScaledObject is the one of our name, and KEDAAutoscaler the HorizontalPodAutoscaler that KEDA created for it, and
	// deletes some time after it.
	ScaledObject   *LiveScaledObject
	KEDAAutoscaler *autoscalingv2.HorizontalPodAutoscaler
}

// Others are other autoscalers and policies on the same target.
type Others struct {
	// Conflicting are other autoscalers on the same target or on what the target owns.
	Conflicting []ConflictingAutoscaler
	// OtherScaledObjects are ScaledObjects on the same target that the policy does not own, paused or not, sorted. KEDA
	// admits one.
	OtherScaledObjects []string
	// OlderPolicy is the name of a policy on the same target that takes precedence; empty for none. OlderNames is true if
	// a user wrote it, while an AutoscalingPolicySet created this one.
	OlderPolicy string
	OlderNames  bool
	// Restoring is the name of a policy on the same target that restores what it took over; empty for none.
	Restoring string
	// NameClash is an object of the same name as our HorizontalPodAutoscaler, such as "Function pap-x", for which Function
	// Mesh would delete ours; empty for none.
	NameClash string
}

// Measured is what the store and the watch of pods report about a target.
type Measured struct {
	// Reading of the target's subscription; nil while it is unknown.
	Reading *backlog.Reading
	// Unknown is why there is no reading; nil if there is one, or if none is wanted.
	Unknown error
	// Partitions of a Failover subscription, each with one active consumer; nil for other types.
	Partitions []backlog.PartitionReading
	// Pods of the target; nil while their health is unknown.
	Pods *policy.Pods
	// FreshFor is the maximum age of a reading for a scale-down; older by Rested if its topics were at rest.
	FreshFor, Rested time.Duration
	// Upstream is what the Functions that publish to its topics process; nil if that is not known of all topics.
	Upstream *policy.Outlook
}

// Target is the scale target of a policy, by its own fields.
type Target struct {
	// Ref is the object that runs the replicas: the one that the policy names, or the child of a FunctionMesh; zero for a
	// function of a worker.
	Ref v1alpha1.ScaleTargetRef
	// Scaling is how the controller changes its replicas.
	Scaling Scaling
	// Scaled are the objects that share the target's replicas, itself included: an autoscaler on any of them conflicts.
	Scaled []v1alpha1.ScaleTargetRef
	// UID changes when the target, or the child of a FunctionMesh, is deleted and recreated. It is empty while there is no
	// child, and for a function of a worker, which has none.
	UID string
	// Replicas is spec.replicas; nil if the field is absent, which the scale subresource needs.
	Replicas *int32
	// Reported is status.replicas of the target or of its StatefulSet; nil if neither reports it. It exceeds Replicas
	// while a rollout of a Deployment replaces pods.
	Reported *int32
	// Unfollowed is why the operator has not acted on the replicas, with the fix if this lasts; empty if it has, or if
	// that is unknown.
	Unfollowed string
	// PodSelector selects its pods, by its scale subresource; empty if unknown.
	PodSelector string
	// Subscription that its replicas share.
	Subscription backlog.Subscription
	// Output is the topic, by its full name, that its replicas publish to; empty if unknown or none.
	Output string
	// SubscriptionType is the type by the target's fields.
	SubscriptionType backlog.SubscriptionType
	// Component is the name of the replicas in Pulsar: tenant/namespace/name.
	Component string
	// NeverAcknowledges is true for a window function that leaves messages in the backlog forever.
	NeverAcknowledges bool
	// NeverZero is true for targets that always need a replica: batch sources, and functions of a worker.
	NeverZero bool
	// OwnAutoscaler is true if the target's operator creates an autoscaler of its own, up to MaxReplicas
	// (spec.maxReplicas).
	OwnAutoscaler bool
	MaxReplicas   *int32
	// MeshOwner is the FunctionMesh that controls the target and resets its replicas; empty for none, or if the policy
	// scales through the mesh.
	MeshOwner string
	// Owner controls the StatefulSet or Deployment that is the target, such as "Function resize"; empty for none.
	Owner string
	// MissingChild is the entry of the FunctionMesh at which Function Mesh stops before the target is created or scaled:
	// the target's own, or an earlier one; nil for none.
	MissingChild *MissingChild
	// Unmanaged is true if an annotation makes the operator ignore the target, so that scaling it has no effect.
	Unmanaged bool
	// UnmanagedBy is the object with that annotation, such as "FunctionMesh etl", if it is not Ref.
	UnmanagedBy string
	// Stopped is true for a function of a worker that the user stopped.
	Stopped bool
	// Updating is true while a rollout is replacing its pods.
	Updating bool
	// Frozen is why its replicas cannot change now; nil if they can.
	Frozen *policy.Hold
	// GracePeriod is how long its pods may take to end; nil if unknown, or if the user cannot set it. MostUsefulGrace is
	// the longest time that they use to finish a call; zero for no limit.
	GracePeriod     *time.Duration
	MostUsefulGrace time.Duration
	// Disturbances are why a change of the replicas restarts the running ones, or changes what was learned about them.
	Disturbances []Disturbance
}

// MissingChild is an entry of a FunctionMesh without its child.
type MissingChild struct {
	Component v1alpha1.MeshComponent
	// AtZero is true if the entry has 0 replicas: Function Mesh's webhook then refuses to create the child.
	AtZero bool
}

// OwnChildMissing reports whether the target itself does not exist yet.
func (t *Target) OwnChildMissing(spec v1alpha1.AutoscalingPolicySpec) bool {
	return t.MissingChild != nil && t.MissingChild.Component == spec.ScaleTargetRef.Component
}

// CreatesChild reports whether the controller keeps at least one replica in the entry, so that Function Mesh can create
// the child. It does so only where it scales.
func (o Observed) CreatesChild() bool {
	return o.Target.OwnChildMissing(o.Policy.Spec) && Scales(o)
}

// Disturbance is a reason and a message with the fix, for condition ScalesWithoutRestart.
type Disturbance struct {
	Reason, Message string
	// Restarts is true if each change of the replicas restarts all running ones.
	Restarts bool
}

// Restarts reports whether each change of the replicas is known to restart the running ones.
func (t *Target) Restarts() bool {
	for _, d := range t.Disturbances {
		if d.Restarts {
			return true
		}
	}
	return false
}

// Scaling is how the controller changes the replicas of a target.
type Scaling int

// The methods of scaling.
const (
	// BySubresource is the scale subresource of the target itself.
	BySubresource Scaling = iota
	// ByMesh is a patch of its entry in a FunctionMesh.
	ByMesh
	// ByWorker is the REST API of a function worker.
	ByWorker
)

// ConflictingAutoscaler is another autoscaler of the same replicas.
type ConflictingAutoscaler struct {
	Kind, Name string
	// TargetKind and TargetName name its scale target: ours, or the StatefulSet behind it.
	TargetKind, TargetName string
	// Owner controls it, such as "Function resize" or "ScaledObject resize"; empty for none.
	Owner string
	UID   types.UID
	// Terminating is true if it is about to be deleted: its owner is a paused ScaledObject, or a policy that defers to
	// this one.
	Terminating bool
	// Manifest recreates it; empty if it is too large for a status, or was not requested.
	Manifest v1alpha1.Manifest
}
