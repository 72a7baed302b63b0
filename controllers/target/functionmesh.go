// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// workload has the fields of a Function, Sink or Source that scaling needs.
type workload struct {
	workloadSpec

	// pendingChange is true while a rollout is paused.
	pendingChange bool
}

type workloadSpec struct {
	// The replicas are first: they are known although a later field has another form than expected.
	Replicas    *int32 `json:"replicas"`
	MinReplicas *int32 `json:"minReplicas"`
	MaxReplicas *int32 `json:"maxReplicas"`

	// MeshSpec is what it consumes.
	function.MeshSpec `json:",inline"`

	Pulsar PulsarSpec `json:"pulsar"`
	// Output is what it publishes to.
	Output struct {
		Topic string `json:"topic"`
	} `json:"output"`

	// Function Mesh writes SecretsMap and ShowPreciseParallelism into the pod template.
	SecretsMap             map[string]struct{} `json:"secretsMap"`
	ShowPreciseParallelism bool                `json:"showPreciseParallelism"`
	Pod                    workloadPod         `json:"pod"`
}

// workloadPod has the fields of spec.pod that are read.
type workloadPod struct {
	// Annotations of the pods: decodeWorkload keeps cluster.AnnotationRestartedAt alone.
	Annotations map[string]string `json:"annotations"`
	VPA         *verticalPolicy   `json:"vpa"`

	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds"`
}

// verticalPolicy is that of a VerticalPodAutoscaler.
type verticalPolicy struct {
	UpdatePolicy struct {
		UpdateMode string `json:"updateMode"`
	} `json:"updatePolicy"`
}

// decodeWorkload keeps what was decoded before an error: other entries of a mesh depend on the replicas.
func decodeWorkload(c *Cached, object map[string]any) error {
	var decoded struct {
		Spec   workloadSpec `json:"spec"`
		Status struct {
			PendingChange string `json:"pendingChange"`
		} `json:"status"`
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &decoded)
	if at, restarted := decoded.Spec.Pod.Annotations[cluster.AnnotationRestartedAt]; restarted {
		decoded.Spec.Pod.Annotations = map[string]string{cluster.AnnotationRestartedAt: at}
	} else {
		decoded.Spec.Pod.Annotations = nil
	}
	c.workload = &workload{workloadSpec: decoded.Spec, pendingChange: decoded.Status.PendingChange != ""}
	return err
}

// function is what the object runs.
func (c *Cached) function() function.Function {
	return c.workload.Function(functionKind(c.Kind), c.Name)
}

// functionKind is a function worker's name of one of cluster.WorkloadKinds.
func functionKind(kind string) function.Kind { return function.Kind(strings.ToLower(kind)) }

// consumed is the subscription that the policy names, else that of the object's own fields. An error is what is wrong
// with it.
func (c *Cached) consumed(named *v1alpha1.Subscription) (backlog.Subscription, backlog.SubscriptionType, error) {
	if named != nil {
		return declared(named)
	}
	return c.function().Subscription()
}

// target describes the object by its own fields, without its subscription.
func (c *Cached) target(ref v1alpha1.ScaleTargetRef) plan.Target {
	f := c.function()
	target := plan.Target{
		Ref:               ref,
		Scaling:           plan.BySubresource,
		Scaled:            scaledBy(ref),
		UID:               string(c.UID),
		Replicas:          c.workload.Replicas,
		MaxReplicas:       c.workload.MaxReplicas,
		NeverZero:         c.Kind == cluster.KindSource,
		Component:         f.FullName(),
		Output:            outputName(c.workload.Output.Topic),
		NeverAcknowledges: f.NeverAcknowledges,
	}
	target.MeshOwner = meshOwner(c.OwnerReferences)
	if isUnmanaged(c.Annotations) {
		target.Unmanaged = ref.Kind + " " + ref.Name
	}
	return target
}

// outputName is the full name of an output topic; empty for none.
func outputName(topic string) string {
	if topic == "" {
		return ""
	}
	return backlog.CompleteTopicName(topic)
}

// meshOwner is the FunctionMesh that controls an object; empty when there is none.
func meshOwner(owners []metav1.OwnerReference) string {
	for _, owner := range owners {
		if owner.Controller != nil && *owner.Controller && owner.Kind == cluster.KindFunctionMesh {
			return owner.Name
		}
	}
	return ""
}

// scaledBy are the objects that share the replicas of a Function, Sink or Source: itself and its StatefulSet.
func scaledBy(ref v1alpha1.ScaleTargetRef) []v1alpha1.ScaleTargetRef {
	gvk := cluster.GVK(cluster.KindStatefulSet)
	return []v1alpha1.ScaleTargetRef{
		ref, {APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: plan.FunctionMeshName(ref)},
	}
}

// unfollowed is why Function Mesh has not acted on the replicas of the target; empty if it has, or if that is unknown.
// The object and its StatefulSet are nil if they do not exist.
//
// Source: Function Mesh v0.27.2, measured: within 40 ms of a change of spec.replicas its StatefulSet has the number and
// status.observedGeneration follows; with the operator stopped neither does.
func (r *Reader) unfollowed(target *plan.Target, object, set *Cached) string {
	if target.Replicas == nil || !RunsInstances(target.Ref) || !r.installed(cluster.KindStatefulSet) {
		return ""
	}
	const inactive = "Function Mesh does not act on the change: is its operator running? "
	name := target.Ref.Kind + " " + target.Ref.Name
	switch {
	case object == nil:
		return inactive + name + " does not exist"
	case target.Scaling == plan.ByMesh && specReplicas(object) != *target.Replicas:
		return inactive + name + " does not have the replicas of its entry in the FunctionMesh"
	}
	switch {
	case object.observed == object.Generation:
		return ""
	case set == nil:
		return inactive + name + " has no StatefulSet"
	case specReplicas(set) != specReplicas(object):
		return inactive + "StatefulSet " + set.Name + " does not have the replicas of " + name
	default:
		return ""
	}
}

// specReplicas is 1 for an object without the field, as its definition says.
func specReplicas(object *Cached) int32 {
	return *cmp.Or(object.Replicas(), new(int32(1)))
}
