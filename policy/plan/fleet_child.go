// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	acmetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// AnnotationFleetSpec tells which spec of the fleet a child was last made from. Without it the controller would
// not notice that a field is gone from the fleet: one that the fleet does not say is the child's own.
const AnnotationFleetSpec = v1alpha1.Group + "/fleet-spec"

// ChildName is the name of the policy for one object of a fleet: <fleet>-<object>-<hash>, of at most 50 bytes, so that
// AutoscalerName need not cut it. The hash, of 40 bits, covers both whole names and the kind, which a fleet may change
// and a child may not.
func ChildName(fleet string, ref v1alpha1.ScaleTargetRef) string {
	const longest = 50
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(fleet + "/" + ref.Kind + "/" + ref.Name)) // a hash.Hash never fails
	suffix := fmt.Sprintf("-%010x", hash.Sum64()>>24)
	room := longest - len(suffix) - len("-")
	object := cutName(ref.Name, max(room/2, room-len(fleet)))
	return cutName(fleet, room-len(object)) + "-" + object + suffix
}

// cutName to so many bytes; what is left may be followed by a dash.
func cutName(name string, most int) string {
	if len(name) <= most {
		return name
	}
	return strings.TrimRight(name[:most], "-.")
}

// ChildApplyConfiguration is a child as it is applied; there is no generated one for this API. It is typed, for the
// client waits for what it wrote unstructured in a second memory of all policies.
type ChildApplyConfiguration struct {
	acmetav1.TypeMetaApplyConfiguration    `json:",inline"`
	*acmetav1.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`
	Spec                                   *v1alpha1.AutoscalingPolicySpec `json:"spec,omitempty"`
}

// IsApplyConfiguration marks it for clients.
func (ChildApplyConfiguration) IsApplyConfiguration() {}

// childTemplate is what all children of a fleet have in common.
type childTemplate struct {
	fleet *v1alpha1.AutoscalingPolicy
	// spec lacks the target.
	spec v1alpha1.AutoscalingPolicySpec
	// mark is the value of AnnotationFleetSpec.
	mark string
}

func newChildTemplate(fleet *v1alpha1.AutoscalingPolicy) (childTemplate, error) {
	t := childTemplate{fleet: fleet, spec: fleet.Spec}
	t.spec.TargetSelector = nil
	text, err := json.Marshal(t.spec)
	if err != nil {
		return t, fmt.Errorf("encoding the spec: %w", err)
	}
	hash := fnv.New64a()
	_, _ = hash.Write(text) // a hash.Hash never fails
	t.mark = fmt.Sprintf("%016x", hash.Sum64())
	return t, nil
}

// specFor an object. It shares what it points to with the fleet.
func (t childTemplate) specFor(ref v1alpha1.ScaleTargetRef) v1alpha1.AutoscalingPolicySpec {
	spec := t.spec
	spec.ScaleTargetRef = ref
	return spec
}

func (t childTemplate) labels() map[string]string {
	return map[string]string{"app.kubernetes.io/managed-by": FieldManager, LabelPolicy: labelValue(t.fleet.Name)}
}

// child is what to apply. One that exists is meant by its UID: it may have been deleted and its name taken since.
func (t childTemplate) child(live *v1alpha1.AutoscalingPolicy, ref v1alpha1.ScaleTargetRef) *ChildApplyConfiguration {
	gv, name := v1alpha1.GroupVersion().String(), ChildName(t.fleet.Name, ref)
	spec := t.specFor(ref)
	child := &ChildApplyConfiguration{
		ObjectMetaApplyConfiguration: &acmetav1.ObjectMetaApplyConfiguration{},
		Spec:                         spec.DeepCopy(),
	}
	child.WithAPIVersion(gv).WithKind(v1alpha1.KindAutoscalingPolicy)
	child.WithName(name).WithNamespace(t.fleet.Namespace).WithLabels(t.labels()).
		WithAnnotations(map[string]string{AnnotationFleetSpec: t.mark}).
		WithOwnerReferences(acmetav1.OwnerReference().
			WithAPIVersion(gv).WithKind(v1alpha1.KindAutoscalingPolicy).
			WithName(t.fleet.Name).WithUID(t.fleet.UID).WithController(true))
	if live != nil {
		child.WithUID(live.UID)
	}
	return child
}

// isCurrent says whether applying would change nothing: what the fleet says is what the child says. What it says beyond
// that is its own.
func (t childTemplate) isCurrent(live *v1alpha1.AutoscalingPolicy, ref v1alpha1.ScaleTargetRef) (bool, error) {
	if live == nil || live.Annotations[AnnotationFleetSpec] != t.mark {
		return false, nil
	}
	for key, value := range t.labels() {
		if live.Labels[key] != value {
			return false, nil
		}
	}
	spec := t.specFor(ref)
	if equality.Semantic.DeepEqual(spec, live.Spec) { // 30 times as fast as what follows, and nearly always so
		return true, nil
	}
	wanted, err := asFields(spec)
	if err != nil {
		return false, err
	}
	has, err := asFields(live.Spec)
	if err != nil {
		return false, err
	}
	return holdsAll(has, wanted), nil
}

func asFields(spec v1alpha1.AutoscalingPolicySpec) (any, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding a spec: %w", err)
	}
	var fields any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("decoding a spec: %w", err)
	}
	return fields, nil
}

// holdsAll says that each field that is wanted is there and the same; lists are one field, as in the schema of a
// policy.
func holdsAll(has, wanted any) bool {
	fields, isObject := wanted.(map[string]any)
	if !isObject {
		return reflect.DeepEqual(has, wanted)
	}
	there, isObject := has.(map[string]any)
	if !isObject {
		return false
	}
	for key, value := range fields {
		if inner, found := there[key]; !found || !holdsAll(inner, value) {
			return false
		}
	}
	return true
}
