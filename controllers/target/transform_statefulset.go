// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

// transformStatefulSet keeps what scaling rests on. All StatefulSets of the cluster come here: of those that run no
// instance of Pulsar only how many replicas they have is kept, for a policy may name what they consume. The command is
// kept of those that Pulsar's function worker made, for nothing else says what they run: 3 KB as a rule, of 40 KB where
// the worker hands its own class path on. Of Function Mesh's the object says that.
func transformStatefulSet(u *unstructured.Unstructured) {
	s, err := decodeStatefulSet(u.Object)
	if err != nil {
		return // no API server serves such a thing: the decoder has the last word
	}
	mesh, _ := cluster.WorkloadOf(u.GetName())
	ours := s.isOfWorker()
	slim := map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(),
		"metadata": identity(u),
		"spec":     picked(u.Object["spec"], "replicas", "selector", "updateStrategy"),
		"status": picked(u.Object["status"], "replicas", "readyReplicas", "updatedReplicas", "observedGeneration",
			"currentRevision",
			"updateRevision"),
	}
	if ours || mesh != "" {
		slim["metadata"] = identity(u, "labels", "annotations")
		slim["spec"] = transformStatefulSetSpec(u, ours)
	}
	u.Object = slim
	dropLastApplied(u)
}

func transformStatefulSetSpec(u *unstructured.Unstructured, command bool) map[string]any {
	spec := picked(u.Object["spec"], "replicas", "selector", "template", "updateStrategy")
	template, ok := spec["template"].(map[string]any)
	if !ok {
		return spec
	}
	slim := map[string]any{"metadata": picked(template["metadata"], "annotations")}
	if pod, ok := template["spec"].(map[string]any); ok && command {
		slim["spec"] = map[string]any{"containers": commands(pod["containers"])}
	}
	spec["template"] = slim
	return spec
}

// commands keeps the commands of the containers.
func commands(containers any) []any {
	list, _ := containers.([]any)
	slim := []any{}
	for _, one := range list {
		slim = append(slim, picked(one, "name", "command", "args"))
	}
	return slim
}

// picked are some keys of a JSON object.
func picked(object any, keys ...string) map[string]any {
	fields, _ := object.(map[string]any)
	wanted := map[string]bool{}
	for _, key := range keys {
		wanted[key] = true
	}
	slim := maps.Clone(fields)
	maps.DeleteFunc(slim, func(key string, _ any) bool { return !wanted[key] })
	return slim
}
