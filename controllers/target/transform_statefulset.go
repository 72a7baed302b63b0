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
	mesh, _ := cluster.WorkloadOf(u.GetName())
	ours := IsOfWorker(u)
	kept := map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(),
		"metadata": identity(u),
		"spec":     withGracePeriod(u, picked(u.Object["spec"], "replicas", "selector", "updateStrategy")),
		"status": picked(u.Object["status"], "replicas", "readyReplicas", "updatedReplicas", "observedGeneration",
			"currentRevision",
			"updateRevision"),
	}
	if ours || mesh != "" {
		kept["metadata"] = identity(u, "labels", "annotations")
		kept["spec"] = transformStatefulSetSpec(u, ours)
	}
	u.Object = kept
	dropLastApplied(u)
}

func transformStatefulSetSpec(u *unstructured.Unstructured, command bool) map[string]any {
	spec := picked(u.Object["spec"], "replicas", "selector", "template", "updateStrategy")
	template, ok := spec["template"].(map[string]any)
	if !ok {
		return spec
	}
	kept := map[string]any{"metadata": picked(template["metadata"], "annotations")}
	if pod, ok := template["spec"].(map[string]any); ok && command {
		kept["spec"] = map[string]any{"containers": commands(pod["containers"])}
	}
	spec["template"] = kept
	return spec
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
	kept := make(map[string]any, len(keys))
	for _, key := range keys {
		if value, exists := fields[key]; exists {
			kept[key] = value
		}
	}
	return kept
}
