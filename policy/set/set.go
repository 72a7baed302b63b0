// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package set

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Selectable is an object that the selector of an AutoscalingPolicySet may match, or a component of a FunctionMesh.
type Selectable struct {
	// Ref names it as a policy's scaleTargetRef does.
	Ref v1alpha1.ScaleTargetRef
	// Labels of the object; of a component, those of its FunctionMesh.
	Labels map[string]string
	// Mesh is the FunctionMesh that owns the object; empty for none, and for a component.
	Mesh string
	// Unscalable is why no policy can scale it; empty if one can.
	Unscalable string
}

// Observed is what the controller read about one AutoscalingPolicySet.
type Observed struct {
	Set *v1alpha1.AutoscalingPolicySet
	// Violation is why the matching objects are unknown. Then only the status is written.
	Violation *plan.Violation
	// Matched objects, by kind and name.
	Matched []MatchedObject
	// Policies that the set controls, whether or not their objects match.
	Policies []*v1alpha1.AutoscalingPolicy
	// Kept are the names of policies that are not deleted yet although their objects no longer match.
	Kept map[string]bool
}

// MatchedObject is an object that the selector matches.
type MatchedObject struct {
	Ref v1alpha1.ScaleTargetRef
	// NotGoverned is why the set does not govern it; nil if it does.
	NotGoverned *NotGoverned
	// PolicyName is PolicyName of the object, and Live the policy of that name; nil for none.
	PolicyName string
	Live       *v1alpha1.AutoscalingPolicy
	// Refused is why the API server refuses its policy; empty if it does not.
	Refused string
}

// NotGoverned is why a set does not govern an object.
type NotGoverned struct {
	Reason  string
	Message string
	// Policy that governs the object instead; empty for none.
	Policy string
}

// Of is the set that controls a policy; nil for a policy that a user wrote.
func Of(p *v1alpha1.AutoscalingPolicy) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil || owner.Kind != v1alpha1.KindAutoscalingPolicySet {
		return nil
	}
	if gv, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || gv.Group != v1alpha1.Group {
		return nil
	}
	return owner
}

// Selector is the selector of a set, or what the user has to fix in it.
func Selector(set *v1alpha1.AutoscalingPolicySet) (labels.Selector, *plan.Violation) {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		return nil, plan.TargetProblem(v1alpha1.ReasonSelectorInvalid, "correct spec.selector: %s", err)
	}
	return selector, nil
}

// Neighbors are all sets and policies of a namespace.
type Neighbors struct {
	Sets     []v1alpha1.AutoscalingPolicySet
	Policies []v1alpha1.AutoscalingPolicy
}

// Observe returns the matching objects, and which of them the set governs. A policy that names an object takes
// precedence, whatever its age and mode; of two sets, the older.
func Observe(set *v1alpha1.AutoscalingPolicySet, neighbors Neighbors, objects []Selectable) Observed {
	observed := Observed{Set: set}
	selector, problem := Selector(set)
	if problem != nil {
		observed.Violation = problem
		return observed
	}
	claims := newClaims(set, neighbors)
	observed.Policies = claims.ours
	meshes := map[string]bool{}
	var matching []Selectable
	for _, object := range objects {
		if !selector.Matches(labels.Set(object.Labels)) {
			continue
		}
		matching = append(matching, object)
		if object.Ref.Kind == plan.KindFunctionMesh {
			meshes[object.Ref.Name] = true
		}
	}
	for _, object := range matching {
		if meshes[object.Mesh] {
			continue // it is a component of a FunctionMesh that matches
		}
		name := PolicyName(set.Name, object.Ref)
		observed.Matched = append(observed.Matched, MatchedObject{
			Ref: object.Ref, NotGoverned: claims.precedence(object), PolicyName: name, Live: claims.byName[name],
		})
	}
	slices.SortFunc(observed.Matched, func(a, b MatchedObject) int { return compareRefs(a.Ref, b.Ref) })
	return observed
}

func compareRefs(a, b v1alpha1.ScaleTargetRef) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name),
		strings.Compare(string(a.Component.Kind), string(b.Component.Kind)),
		strings.Compare(a.Component.Name, b.Component.Name))
}

// claims are the objects that the policies and sets of a namespace claim.
type claims struct {
	// naming is the policy of a user for each object that one names.
	naming map[replicasKey]string
	// older sets, the oldest first.
	older  []olderSet
	byName map[string]*v1alpha1.AutoscalingPolicy
	// ours are the policies that the set controls.
	ours []*v1alpha1.AutoscalingPolicy
}

type olderSet struct {
	set      *v1alpha1.AutoscalingPolicySet
	selector labels.Selector
}

// replicasKey is the object that a policy scales: for a component, its child.
type replicasKey struct {
	schema.GroupKind
	name string
}

func replicasOf(ref v1alpha1.ScaleTargetRef) replicasKey {
	ref = plan.ReplicasOf(ref)
	return replicasKey{schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), ref.Name}
}

func newClaims(set *v1alpha1.AutoscalingPolicySet, neighbors Neighbors) claims {
	c := claims{naming: map[replicasKey]string{}, byName: map[string]*v1alpha1.AutoscalingPolicy{}}
	for i := range neighbors.Policies {
		p := &neighbors.Policies[i]
		c.byName[p.Name] = p
		owner, key := Of(p), replicasOf(p.Spec.ScaleTargetRef)
		switch {
		case owner != nil && owner.UID == set.UID:
			c.ours = append(c.ours, p)
		case owner != nil || key.name == "":
		default:
			if name, taken := c.naming[key]; !taken || p.Name < name {
				c.naming[key] = p.Name
			}
		}
	}
	for i := range neighbors.Sets {
		other := &neighbors.Sets[i]
		if other.Name == set.Name || other.DeletionTimestamp != nil || ByAge(other, set) > 0 {
			continue
		}
		if selector, problem := Selector(other); problem == nil { // a set with an invalid selector governs nothing
			c.older = append(c.older, olderSet{other, selector})
		}
	}
	slices.SortFunc(c.older, func(a, b olderSet) int { return ByAge(a.set, b.set) })
	return c
}

// ByAge orders objects by creation time, then by name and namespace.
func ByAge(a, b metav1.Object) int {
	created := a.GetCreationTimestamp()
	return cmp.Or(created.Compare(b.GetCreationTimestamp().Time), strings.Compare(a.GetName(), b.GetName()),
		strings.Compare(a.GetNamespace(), b.GetNamespace()))
}

// precedence is what takes precedence over the set; nil if the set governs the object.
func (c claims) precedence(object Selectable) *NotGoverned {
	if name, named := c.naming[replicasOf(object.Ref)]; named {
		return &NotGoverned{v1alpha1.ReasonNamedByPolicy, fmt.Sprintf("AutoscalingPolicy %s names it", name), name}
	}
	if object.Mesh != "" {
		return &NotGoverned{Reason: v1alpha1.ReasonOwnedByFunctionMesh, Message: fmt.Sprintf(
			"FunctionMesh %s sets its replicas: label the mesh instead, so that its components get policies",
			object.Mesh)}
	}
	if object.Unscalable != "" {
		return &NotGoverned{Reason: v1alpha1.ReasonNothingToScale, Message: object.Unscalable}
	}
	for _, older := range c.older {
		if older.selector.Matches(labels.Set(object.Labels)) {
			return &NotGoverned{
				v1alpha1.ReasonOlderPolicySet, fmt.Sprintf("the older AutoscalingPolicySet %s selects it", older.set.Name),
				PolicyName(older.set.Name, object.Ref),
			}
		}
	}
	return nil
}

// isTaken reports whether the object's policy name belongs to a policy that the set does not control.
func (object MatchedObject) isTaken(set *v1alpha1.AutoscalingPolicySet) bool {
	return object.Live != nil && !metav1.IsControlledBy(object.Live, set) && !object.isBeingDeleted(set)
}

// isBeingDeleted reports whether a policy is being deleted, of this set or of a deleted set of its name. The controller
// recreates it then.
func (object MatchedObject) isBeingDeleted(set *v1alpha1.AutoscalingPolicySet) bool {
	if object.Live == nil {
		return false
	}
	owner := Of(object.Live)
	return owner != nil && owner.Name == set.Name && (object.Live.DeletionTimestamp != nil || owner.UID != set.UID)
}

// Actions lists the writes for a set, except its status.
type Actions struct {
	// Apply are policies that are missing or differ from the template.
	Apply []PlannedPolicy
	// Delete are policies of objects that are deleted, or that the set no longer governs.
	Delete []*v1alpha1.AutoscalingPolicy
}

// PlannedPolicy is a policy to apply.
type PlannedPolicy struct {
	Policy *v1alpha1.AutoscalingPolicy
	// Create is true if there is no such policy yet. The controller must not overwrite one that was created meanwhile.
	Create bool
}

// Ref is the object that the policy scales.
func (p PlannedPolicy) Ref() v1alpha1.ScaleTargetRef { return p.Policy.Spec.ScaleTargetRef }

// New plans the writes. It writes nothing while the matching objects are unknown.
func New(observed Observed) (Actions, error) {
	var actions Actions
	if observed.Violation != nil {
		return actions, nil //nolint:nilerr // a violation is a result
	}
	template, err := newTemplate(observed.Set)
	if err != nil {
		return actions, err
	}
	wanted := map[string]bool{}
	for _, object := range observed.Matched {
		if object.NotGoverned != nil {
			continue
		}
		wanted[object.PolicyName] = true
		if object.isTaken(observed.Set) || object.isBeingDeleted(observed.Set) {
			continue
		}
		current, err := template.isCurrent(object.Live, object.Ref)
		if err != nil {
			return actions, err
		}
		if !current {
			actions.Apply = append(actions.Apply, PlannedPolicy{template.policy(object), object.Live == nil})
		}
	}
	for _, p := range observed.Policies {
		if !wanted[p.Name] && !observed.Kept[p.Name] && p.DeletionTimestamp == nil {
			actions.Delete = append(actions.Delete, p)
		}
	}
	return actions, nil
}
