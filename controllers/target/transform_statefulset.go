// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

// transformStatefulSet keeps the replicas of every StatefulSet of the cluster, because any may be the target of a
// policy with a subscription. For those of Pulsar's function worker it keeps the command, the only source of what they
// run: 3 KB as a rule, 40 KB where the worker passes on its class path.
func transformStatefulSet(u *unstructured.Unstructured) {
	if _, ok := u.Object["spec"].(map[string]any); !ok {
		return // decodeStatefulSet reports it to the readers of the object
	}
	metadata, spec := identity(u), picked(u.Object["spec"], "replicas", "selector")
	if ControllerOf(u) != "" { // no policy scales it
		delete(spec, "selector")
	}
	if kind, partition := updateStrategy(u); kind == onDelete || partition != 0 { // rarely; updating reads no other
		spec["updateStrategy"] = picked(u.Object["spec"], "updateStrategy")["updateStrategy"]
	}
	switch {
	case IsOfWorker(u):
		metadata, spec["template"] = identity(u, "labels", "annotations"), instanceTemplate(u)
	case ControllerOf(u) == "":
		spec = withGracePeriod(u, spec)
	case restartedAt(u) != "":
		spec["template"] = map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{cluster.AnnotationRestartedAt: restartedAt(u)},
		}}
	}
	u.Object = map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": metadata, "spec": spec,
		"status": picked(u.Object["status"], "replicas", "readyReplicas", "updatedReplicas", "observedGeneration",
			"currentRevision", "updateRevision"),
	}
}

// instanceTemplate keeps of a pod template what says which function of a worker it runs.
func instanceTemplate(u *unstructured.Unstructured) map[string]any {
	metadata, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template", "metadata")
	containers, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template", "spec", "containers")
	return map[string]any{
		"metadata": picked(metadata, "annotations"), "spec": map[string]any{"containers": commands(containers)},
	}
}

// commands keeps the commands of the containers.
func commands(containers any) []any {
	list, _ := containers.([]any)
	kept := []any{}
	for _, one := range list {
		kept = append(kept, picked(one, "name", "command", "args"))
	}
	return kept
}

// picked are some keys of a JSON object, in a map of their size: a map from which keys were deleted stays large.
func picked(object any, keys ...string) map[string]any {
	fields, _ := object.(map[string]any)
	kept := map[string]any{}
	for _, key := range keys {
		if value, exists := fields[key]; exists {
			kept[key] = value
		}
	}
	return kept
}
