// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
)

// RecreatedWithin is how long a vanished target may take to come back. At each update Pulsar's function worker deletes
// the StatefulSet, waits for the pods to end, and recreates it with replicas of its own. Ending pods take seconds; the
// worker's own retries take up to 5 min.
const RecreatedWithin = 5 * time.Minute

// SelectableKinds are the kinds that an AutoscalingPolicySet selects.
func SelectableKinds() []string {
	return append(cluster.WorkloadKinds(), cluster.KindFunctionMesh, cluster.KindStatefulSet)
}

// Selectables are what a set may select of an object: itself, the components of a FunctionMesh, or nothing of a
// StatefulSet that Pulsar's function worker did not create. The name is no criterion: with a jobName it is
// <jobName>-<hash>.
func Selectables(object *Cached) []set.Selectable {
	one := set.Selectable{
		Ref: v1alpha1.ScaleTargetRef{
			APIVersion: cluster.GVK(object.Kind).GroupVersion().String(), Kind: object.Kind, Name: object.Name,
		},
		Labels: object.Labels,
	}
	switch object.Kind {
	case cluster.KindFunctionMesh:
		return meshSelectables(object, one)
	case cluster.KindStatefulSet:
		if !isOfWorker(object) {
			return nil
		}
		if f, err := InstanceOf(object); err == nil && f.Kind == function.KindSource && !f.Batch {
			one.Unscalable = plainSource
		}
	default:
		one.Mesh = meshOwner(object.OwnerReferences)
		one.Unscalable = consumesNothing(object.Kind, object.workload, object.invalid)
	}
	return []set.Selectable{one}
}

// meshSelectables are the components of a FunctionMesh, each once: two entries of a name share one object.
func meshSelectables(mesh *Cached, one set.Selectable) []set.Selectable {
	var all []set.Selectable
	seen := map[v1alpha1.MeshComponent]bool{}
	for _, kind := range cluster.WorkloadKinds() {
		for _, entry := range entriesOf(mesh, v1alpha1.WorkloadKind(kind)) {
			component := v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadKind(kind), Name: entry.Name()}
			if component.Name == "" || seen[component] {
				continue
			}
			seen[component] = true
			one.Ref.Component, one.Unscalable = component, consumesNothing(kind, entry.fields, entry.invalid)
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		one.Unscalable = fmt.Sprintf("FunctionMesh %s has no functions, sinks or sources", mesh.Name)
		return []set.Selectable{one}
	}
	return all
}

// plainSource is why a Source is not scaled.
const plainSource = "a Source without batchSourceConfig consumes nothing from Pulsar: scale it on its CPU"

// consumesNothing says that a Source brings data into Pulsar and so has no backlog; empty for other objects.
func consumesNothing(kind string, w *workload, invalid error) string {
	if kind != cluster.KindSource || w.BatchSourceConfig != nil || invalid != nil {
		return ""
	}
	return plainSource
}
