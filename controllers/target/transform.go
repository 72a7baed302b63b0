// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Transform drops what this package does not read before the cache stores an object. A Function takes 15 KB with its
// pod template and status, and 4.5 KB without. For 10k Functions that saves 100 MB of the 512 MB that the adapter has.
func Transform(object any) (any, error) {
	if fields, err := meta.Accessor(object); err == nil {
		fields.SetManagedFields(nil)
		dropLastApplied(fields)
	}
	switch o := object.(type) {
	case *autoscalingv2.HorizontalPodAutoscaler: // of its status only conditions are read; a sync changes the metrics
		o.Status = autoscalingv2.HorizontalPodAutoscalerStatus{Conditions: o.Status.Conditions}
	case *v1alpha1.AutoscalingPolicy: // decoding leaves room for 16
		o.Status.Conditions = slices.Clone(o.Status.Conditions)
	case *unstructured.Unstructured:
		transformUnstructured(o)
	}
	return object, nil
}

func transformUnstructured(u *unstructured.Unstructured) {
	switch kind := u.GetKind(); {
	case slices.Contains(cluster.WorkloadKinds(), kind):
		transformWorkload(u)
	case kind == cluster.KindStatefulSet:
		transformStatefulSet(u)
	case kind == cluster.KindDeployment:
		transformDeployment(u)
	case kind == cluster.KindFunctionMesh:
		transformMesh(u)
	case kind == cluster.KindScaledObject || kind == cluster.KindVerticalPodAutoscaler:
		transformOtherAutoscaler(u)
	case kind == cluster.KindAutoscaler:
		transformAutoscaler(u)
	}
}

// transformWorkload drops what workload does not decode. Labels stay, because Objects selects by them.
func transformWorkload(u *unstructured.Unstructured) {
	status := picked(u.Object["status"], "pendingChange", "observedGeneration")
	delete(u.Object, "status")
	if pending, _ := status["pendingChange"].(string); pending != "" {
		status["pendingChange"] = changePending
	}
	if len(status) > 0 {
		u.Object["status"] = status
	}
	if spec, ok := u.Object["spec"].(map[string]any); ok {
		u.Object["spec"] = transformSpec(spec)
	}
	u.Object["metadata"] = identity(u, "labels", "annotations")
}

// changePending replaces the patch of a paused rollout, which may be as large as the object.
const changePending = "not cached"

// transformMesh keeps of each entry the fields that the cache keeps of a workload: an entry is the spec of one.
func transformMesh(u *unstructured.Unstructured) {
	u.Object["status"] = picked(u.Object["status"], "observedGeneration")
	spec, ok := u.Object["spec"].(map[string]any)
	if !ok {
		return
	}
	maps.DeleteFunc(spec, func(key string, _ any) bool { return !slices.Contains(entryLists(), key) })
	for _, list := range spec {
		entries, _ := list.([]any)
		for i, entry := range entries {
			if fields, ok := entry.(map[string]any); ok {
				entries[i] = transformSpec(fields)
			}
		}
	}
}

// transformOtherAutoscaler keeps the identity, the target and whether the autoscaler is paused. Triggers, status and
// recommendations are most of 10k such objects, and no write starts from the cache. Of a ScaledObject that belongs to a
// policy all fields stay that are compared or reported.
func transformOtherAutoscaler(u *unstructured.Unstructured) {
	annotations := u.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return !slices.Contains([]string{
			cluster.AnnotationPaused, cluster.AnnotationPausedAt, cluster.AnnotationPausedIn, cluster.AnnotationPausedOut,
			cluster.AnnotationForced,
			plan.AnnotationPausedBy,
		}, key)
	})
	if u.GetKind() == cluster.KindScaledObject && OwnedByPolicy(u) {
		u.Object = map[string]any{
			"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(),
			"metadata": identity(u, "labels"), "spec": u.Object["spec"], "status": picked(u.Object["status"], "conditions"),
		}
		u.SetAnnotations(annotations)
		return
	}
	u.Object = map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(),
		"metadata": identity(u),
		"spec":     picked(u.Object["spec"], "scaleTargetRef", "targetRef", "updatePolicy"),
	}
	u.SetAnnotations(annotations)
}

// dropLastApplied drops the copy of an object that kubectl writes into an annotation.
func dropLastApplied(fields metav1.Object) {
	if annotations := fields.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		fields.SetAnnotations(annotations)
	}
}

// transformSpec keeps what workloadSpec decodes, and of the pod what workloadPod does: the rest is most of an object.
func transformSpec(spec map[string]any) map[string]any {
	kept := picked(spec, jsonKeys(reflect.TypeFor[workloadSpec]())...)
	if pod, ok := kept["pod"].(map[string]any); ok {
		pod = picked(pod, jsonKeys(reflect.TypeFor[workloadPod]())...)
		if annotations, ok := pod["annotations"]; ok {
			pod["annotations"] = picked(annotations, cluster.AnnotationRestartedAt)
		}
		kept["pod"] = pod
	}
	return kept
}

// identity is the metadata that names an object and its owners, with the additional fields that the caller requests.
func identity(u *unstructured.Unstructured, more ...string) map[string]any {
	return picked(u.Object["metadata"], append([]string{
		"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"ownerReferences",
	}, more...)...)
}

// jsonKeys of a struct's fields, those of embedded structs among them.
func jsonKeys(of reflect.Type) (keys []string) {
	for field := range of.Fields() {
		if field.Anonymous {
			keys = append(keys, jsonKeys(field.Type)...)
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		keys = append(keys, name)
	}
	return keys
}
