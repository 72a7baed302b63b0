// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
)

// Input is what was read of a cluster or of a namespace.
type Input struct {
	// ScaledObjects and Autoscalers to translate, and with MaxReplicas also maxReplicas of the components.
	ScaledObjects []unstructured.Unstructured
	Autoscalers   []autoscalingv2.HorizontalPodAutoscaler
	MaxReplicas   bool
	// Components are Functions, Sinks, Sources and FunctionMeshes, and Workloads are StatefulSets and Deployments.
	Components, Workloads []unstructured.Unstructured
	// Selectables are what an AutoscalingPolicySet may select, by namespace.
	Selectables map[string][]set.Selectable
	Policies    []v1alpha1.AutoscalingPolicy
	Sets        []v1alpha1.AutoscalingPolicySet
}

// Result is what becomes of the autoscalers.
type Result struct {
	// Moves are policies and sets to create.
	Moves []Move
	// Begun are policies that exist already, on targets of other autoscalers.
	Begun []Begun
	// Untranslated is what has no counterpart, each with what to do.
	Untranslated []Problem
	// Foreign are HorizontalPodAutoscalers of objects that do not say that they consume from Pulsar.
	Foreign []string
}

// Move is a policy, or a set for policies that agree.
type Move struct {
	// Policy to create; nil with Set.
	Policy *v1alpha1.AutoscalingPolicy
	// Set to create; nil with Policy.
	Set *v1alpha1.AutoscalingPolicySet
	// Targets that it scales, such as "Function resize".
	Targets []string
	// Comments explain fields of the spec, by the name of the field.
	Comments map[string]string
	// Notes are what the policy does not have of the autoscalers, and why.
	Notes []string
	// Origins scale the targets today.
	Origins []Origin
}

// Namespace of the policy or set.
func (m Move) Namespace() string {
	if m.Set != nil {
		return m.Set.Namespace
	}
	return m.Policy.Namespace
}

// Spec is how the targets are scaled.
func (m Move) Spec() *v1alpha1.ScalingSpec {
	if m.Set != nil {
		return &m.Set.Spec.Template.Spec
	}
	return &m.Policy.Spec.ScalingSpec
}

// Origin scales a target today.
type Origin struct {
	// Kind, Namespace and Name of the object.
	Kind, Namespace, Name string
	// Entry is the one of a FunctionMesh, such as "entry clean of spec.functions"; empty for others.
	Entry string
	// Remove are the fields to delete from its manifest to stay with the policy; empty for the object itself.
	Remove string
	// Paused is true for a ScaledObject that a user paused, and Restores for one with which KEDA sets the replicas from
	// before it when it is deleted.
	Paused, Restores bool
}

// String names it in a sentence.
func (o Origin) String() string {
	text := o.Kind + " " + o.Name
	if o.Entry != "" {
		text = o.Entry + " of " + text
	}
	if o.Remove != "" {
		return fieldMax + " of " + text
	}
	return text
}

// object names what has the limits of replicas.
func (o Origin) object() string {
	o.Remove = ""
	return o.String()
}

// Begun is a policy on a target that an autoscaler scales, too.
type Begun struct {
	Policy  v1alpha1.AutoscalingPolicy
	Origins []Origin
}

// Problem is something without a counterpart in a policy.
type Problem struct {
	// Object that has it, such as "ScaledObject shop/billing".
	Object string
	// Message says what it is, and what to do.
	Message string
}

// Translate translates all autoscalers. The order of the result is that of namespaces and names.
func Translate(in Input) Result {
	t := newTranslator(in)
	for i := range in.ScaledObjects {
		t.scaledObject(&in.ScaledObjects[i])
	}
	for i := range in.Components {
		if in.MaxReplicas {
			t.component(&in.Components[i])
		}
	}
	for i := range in.Autoscalers {
		t.autoscaler(&in.Autoscalers[i])
	}
	result := Result{Foreign: t.foreign}
	for _, key := range t.order {
		d := t.drafts[key]
		switch {
		case d.existing != nil:
			result.Begun = append(result.Begun, Begun{Policy: *d.existing, Origins: d.origins})
		case t.selected[key] != "":
			t.problem(key.kind+" "+key.namespace+"/"+key.name, "AutoscalingPolicySet %s selects it, and has no "+
				"policy for it yet: wait until the adapter has made it", t.selected[key])
		case !d.incomplete:
			result.Moves = append(result.Moves, d.move(t.policyName(d)))
		}
	}
	result.Untranslated = t.problems
	result.Moves = join(in, result.Moves)
	slices.SortStableFunc(result.Moves, func(a, b Move) int {
		return cmp.Or(strings.Compare(a.Namespace(), b.Namespace()), strings.Compare(a.Targets[0], b.Targets[0]))
	})
	slices.SortStableFunc(result.Begun, func(a, b Begun) int {
		return cmp.Or(strings.Compare(a.Policy.Namespace, b.Policy.Namespace), strings.Compare(a.Policy.Name, b.Policy.Name))
	})
	slices.Sort(result.Foreign)
	return result
}

// translator collects what becomes of the autoscalers.
type translator struct {
	objects
	policies map[objectKey]*v1alpha1.AutoscalingPolicy
	// selected has the set that makes a policy for a target.
	selected map[objectKey]string
	// names of policies, with those to create.
	names  map[string]bool
	drafts map[objectKey]*draft
	order  []objectKey

	problems []Problem
	foreign  []string
}

func newTranslator(in Input) *translator {
	t := &translator{
		objects: newObjects(in), policies: map[objectKey]*v1alpha1.AutoscalingPolicy{}, names: map[string]bool{},
		drafts: map[objectKey]*draft{}, selected: selectedBy(in),
	}
	for i := range in.Policies {
		p := &in.Policies[i]
		t.names[p.Namespace+"/"+p.Name] = true
		if p.Spec.ScaleTargetRef.Name != "" {
			t.policies[keyOf(p.Namespace, p.Spec.ScaleTargetRef)] = p
		}
	}
	return t
}

func (t *translator) problem(object, format string, args ...any) {
	t.problems = append(t.problems, Problem{object, fmt.Sprintf(format, args...)})
}

// policyName is the name of the target, with its kind where another policy has that name.
func (t *translator) policyName(d *draft) string {
	child := plan.ReplicasOf(d.ref)
	name := child.Name
	if t.names[d.namespace+"/"+name] {
		name += "-" + strings.ToLower(child.Kind)
	}
	t.names[d.namespace+"/"+name] = true
	return name
}
