// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// component has the fields of a Function, Sink or Source, or of an entry of a FunctionMesh, that scale it.
//
// Source: Function Mesh v0.27.2, api/compute/v1alpha1/common.go.
type component struct {
	MinReplicas *int32 `json:"minReplicas"`
	MaxReplicas *int32 `json:"maxReplicas"`
	Pod         struct {
		BuiltinAutoscaler   []string                                       `json:"builtinAutoscaler"`
		AutoScalingMetrics  []autoscalingv2.MetricSpec                     `json:"autoScalingMetrics"`
		AutoScalingBehavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"autoScalingBehavior"`
	} `json:"pod"`
}

func decodeComponent(fields map[string]any) (decoded component, err error) {
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &decoded)
	return decoded, err
}

// component translates maxReplicas of a Function, Sink or Source, or of the entries of a FunctionMesh.
func (t *translator) component(object *unstructured.Unstructured) {
	spec, _ := object.Object["spec"].(map[string]any)
	ref := v1alpha1.ScaleTargetRef{APIVersion: versionFunctionMesh, Kind: object.GetKind(), Name: object.GetName()}
	if object.GetKind() != plan.KindFunctionMesh {
		if controllerKind(object) != plan.KindFunctionMesh { // else its entry has the same fields
			t.own(object.GetNamespace(), ref, spec)
		}
		return
	}
	for _, kind := range []v1alpha1.WorkloadKind{
		v1alpha1.WorkloadFunction, v1alpha1.WorkloadSource, v1alpha1.WorkloadSink,
	} {
		entries, _ := spec[plan.MeshList(kind)].([]any)
		for _, entry := range entries {
			fields, _ := entry.(map[string]any)
			ref.Component.Kind = kind
			ref.Component.Name, _ = fields["name"].(string)
			if ref.Component.Name != "" {
				t.own(object.GetNamespace(), ref, fields)
			}
		}
	}
}

// own translates Function Mesh's own autoscaler.
func (t *translator) own(namespace string, ref v1alpha1.ScaleTargetRef, fields map[string]any) {
	origin := Origin{Kind: ref.Kind, Namespace: namespace, Name: ref.Name}
	title := ref.Kind + " " + namespace + "/" + ref.Name
	if component := ref.Component; component.Name != "" {
		origin.Entry = fmt.Sprintf("entry %s of spec.%s", component.Name, plan.MeshList(component.Kind))
		title += ", " + origin.Entry
	}
	spec, err := decodeComponent(fields)
	switch {
	case err != nil:
		t.problem(title, "it cannot be decoded: %v", err)
		return
	case spec.MaxReplicas == nil:
		return
	case t.unscalable[keyOf(namespace, ref)] != "":
		t.problem(title, "%s", t.unscalable[keyOf(namespace, ref)])
		return
	}
	origin.Remove = spec.remove()
	d := t.draft(namespace, ref)
	d.origins = append(d.origins, origin)
	if d.existing != nil {
		return
	}
	low := boundOf(spec.MinReplicas, fieldMin, hpaMinReplicas)
	if plan.ReplicasOf(ref).Kind == string(v1alpha1.WorkloadSource) {
		low.value = max(1, low.value) // without a replica a batch source discovers nothing
	}
	d.bounds(origin, low, bound{*spec.MaxReplicas, fieldMax})
	t.ownMetrics(d, origin, title, spec)
}

// ownMetrics explains the rules as Function Mesh applies them: built-in rules take the place of metrics and behavior.
//
// Source: Function Mesh v0.27.2, controllers/spec/hpa.go MakeHPA.
func (t *translator) ownMetrics(d *draft, origin Origin, title string, spec component) {
	if len(spec.Pod.BuiltinAutoscaler) == 0 {
		t.metrics(d, title, spec.Pod.AutoScalingMetrics)
		t.behavior(d, origin, title, spec.Pod.AutoScalingBehavior)
		return
	}
	for _, rule := range spec.Pod.BuiltinAutoscaler {
		resource, percent := "cpu", strings.TrimPrefix(rule, "AverageUtilizationCPUPercent")
		if strings.Contains(rule, "Memory") {
			resource, percent = "memory", strings.TrimPrefix(rule, "AverageUtilizationMemoryPercent")
		}
		if resource == "cpu" {
			d.note("builtinAutoscaler %s, cpu at %s %% of the request times limit/request: %s", rule, percent, insteadOfCPU)
			continue
		}
		d.note("builtinAutoscaler %s: memory does not follow the load, and a policy does not scale by it.", rule)
	}
	if len(spec.Pod.AutoScalingMetrics) > 0 || spec.Pod.AutoScalingBehavior != nil {
		d.note("autoScalingMetrics, autoScalingBehavior: Function Mesh ignores them beside builtinAutoscaler.")
	}
}

// remove are the fields to delete from a manifest; Function Mesh needs none of them without its autoscaler.
func (c component) remove() string {
	fields := []string{fieldMax}
	if len(c.Pod.BuiltinAutoscaler) > 0 {
		fields = append(fields, "pod.builtinAutoscaler")
	}
	if len(c.Pod.AutoScalingMetrics) > 0 {
		fields = append(fields, "pod.autoScalingMetrics")
	}
	if c.Pod.AutoScalingBehavior != nil {
		fields = append(fields, "pod.autoScalingBehavior")
	}
	return strings.Join(fields, ", ")
}
