// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package set

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

const (
	// Label names the set on its policies.
	Label = v1alpha1.Group + "/policy-set"
	// AnnotationTemplateHash identifies the template of the last apply. It shows that a field was removed from the
	// template: fields that the template does not have are the policy's own.
	AnnotationTemplateHash = v1alpha1.Group + "/template-hash"
)

// PolicyName is the name of a set's policy for one object: <set>-<object>-<hash>, of at most 50 bytes, so that
// AutoscalerName does not shorten it. The hash of 40 bits covers the full names and the kind.
func PolicyName(set string, ref v1alpha1.ScaleTargetRef) string {
	const longest = 50
	object, hash := ref.Name, fnv.New64a()
	text := set + "/" + ref.Kind + "/" + ref.Name
	if c := ref.Component; c.Name != "" {
		object += "-" + c.Name
		text += "/" + string(c.Kind) + "/" + c.Name
	}
	_, _ = hash.Write([]byte(text)) // a hash.Hash never fails
	suffix := fmt.Sprintf("-%010x", hash.Sum64()>>24)
	room := longest - len(suffix) - len("-")
	object = plan.CutName(object, max(room/2, room-len(set)))
	return plan.CutName(set, room-len(object)) + "-" + object + suffix
}

// template is what all policies of a set share.
type template struct {
	set    *v1alpha1.AutoscalingPolicySet
	labels map[string]string
	// annotations include the hash of the template.
	annotations map[string]string
}

func newTemplate(set *v1alpha1.AutoscalingPolicySet) (template, error) {
	t := template{set: set, labels: map[string]string{}, annotations: map[string]string{}}
	text, err := json.Marshal(set.Spec.Template)
	if err != nil {
		return t, fmt.Errorf("encoding the template: %w", err)
	}
	hash := fnv.New64a()
	_, _ = hash.Write(text) // a hash.Hash never fails
	for key, value := range set.Spec.Template.Metadata.Labels {
		t.labels[key] = string(value)
	}
	for key, value := range set.Spec.Template.Metadata.Annotations {
		t.annotations[key] = string(value)
	}
	t.labels["app.kubernetes.io/managed-by"], t.labels[Label] = plan.FieldManager, plan.LabelValue(set.Name)
	t.annotations[AnnotationTemplateHash] = fmt.Sprintf("%016x", hash.Sum64())
	return t, nil
}

// specFor shares pointers with the set. The API server refuses the actuators HPA and KEDA for a component of a
// FunctionMesh, which has no scale subresource.
func (t template) specFor(ref v1alpha1.ScaleTargetRef) v1alpha1.AutoscalingPolicySpec {
	spec := v1alpha1.AutoscalingPolicySpec{ScaleTargetRef: ref, ScalingSpec: t.set.Spec.Template.Spec}
	if autoscaled := spec.Actuator == v1alpha1.ActuatorHPA || spec.Actuator == v1alpha1.ActuatorKEDA; autoscaled &&
		ref.Component.Name != "" {
		spec.Actuator = v1alpha1.ActuatorAuto
	}
	return spec
}

// policy is the policy to apply. The UID identifies an existing one, since its name may belong to another policy by
// now.
func (t template) policy(object MatchedObject) *v1alpha1.AutoscalingPolicy {
	gv := v1alpha1.GroupVersion().String()
	p := &v1alpha1.AutoscalingPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: gv, Kind: v1alpha1.KindAutoscalingPolicy},
		ObjectMeta: metav1.ObjectMeta{
			Name: object.PolicyName, Namespace: t.set.Namespace, Labels: t.labels, Annotations: t.annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: gv, Kind: v1alpha1.KindAutoscalingPolicySet, Name: t.set.Name, UID: t.set.UID,
				Controller: new(true),
			}},
		},
		Spec: t.specFor(object.Ref),
	}
	if object.Live != nil {
		p.UID = object.Live.UID
	}
	return p
}

// isCurrent reports whether applying would change nothing: all fields of the template match. Other fields are the
// policy's own.
func (t template) isCurrent(live *v1alpha1.AutoscalingPolicy, ref v1alpha1.ScaleTargetRef) (bool, error) {
	if live == nil || !plan.HasAll(live.Labels, t.labels) || !plan.HasAll(live.Annotations, t.annotations) {
		return false, nil
	}
	spec := t.specFor(ref)
	if equality.Semantic.DeepEqual(spec, live.Spec) { // 30 times as fast as the comparison below, and nearly always true
		return true, nil
	}
	wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		return false, fmt.Errorf("encoding a spec: %w", err)
	}
	has, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&live.Spec)
	if err != nil {
		return false, fmt.Errorf("encoding a spec: %w", err)
	}
	return containsAll(has, wanted), nil
}

// containsAll reports whether all wanted fields exist with the same values. A list is one field, as in the schema of a
// policy.
func containsAll(has, wanted any) bool {
	fields, isObject := wanted.(map[string]any)
	if !isObject {
		return reflect.DeepEqual(has, wanted)
	}
	there, isObject := has.(map[string]any)
	if !isObject {
		return false
	}
	for key, value := range fields {
		if inner, found := there[key]; !found || !containsAll(inner, value) {
			return false
		}
	}
	return true
}
