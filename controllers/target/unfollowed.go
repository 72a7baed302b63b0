// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// unfollowed is why Function Mesh has not acted on the replicas of the target; empty if it has, or if that is unknown.
// The object and its StatefulSet are nil if they do not exist.
//
// Source: Function Mesh v0.27.2, measured: within 40 ms of a change of spec.replicas its StatefulSet has the number and
// status.observedGeneration follows; with the operator stopped neither does.
func (r *Reader) unfollowed(target *plan.Target, object, set *unstructured.Unstructured) string {
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
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	switch {
	case observed == object.GetGeneration():
		return ""
	case set == nil:
		return inactive + name + " has no StatefulSet"
	case specReplicas(set) != specReplicas(object):
		return inactive + "StatefulSet " + set.GetName() + " does not have the replicas of " + name
	default:
		return ""
	}
}

// specReplicas is 1 for an object without the field, as its definition says.
func specReplicas(object *unstructured.Unstructured) int32 {
	return *cmp.Or(replicasIn(object.Object, "spec", "replicas"), new(int32(1)))
}
