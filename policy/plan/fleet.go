// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// kindFunctionMesh is what owns the objects of a mesh.
const kindFunctionMesh = "FunctionMesh"

// Selectable is an object of the kind that a fleet selects: a policy with a targetSelector is a fleet, and the policies
// that are made from it are its children.
type Selectable struct {
	Name   string
	Labels map[string]string
	// Controller is what controls it, such as "FunctionMesh etl"; empty when nothing does.
	Controller string
	// OfWorker says of a StatefulSet that Pulsar's function worker made it, as far as its containers tell.
	OfWorker bool
}

// FleetWorld is what was gathered about one fleet.
type FleetWorld struct {
	Policy *v1alpha1.AutoscalingPolicy
	// Violation is why it cannot be told which objects match; then all stays as it is.
	Violation *Violation
	// Matched objects, by name.
	Matched []FleetObject
	// Children are the policies that are controlled by this one, whether their objects match or not.
	Children []*v1alpha1.AutoscalingPolicy
	// Awaited children, by name: their objects are gone, for so short a time that they may come back.
	Awaited map[string]bool
}

// FleetObject is an object that the selector matches.
type FleetObject struct {
	Name string
	// LeftBecause says why the fleet does not govern it; empty when it does.
	LeftBecause string
	// InMesh says that this is because a FunctionMesh owns it.
	InMesh bool
	// Live is the policy that bears the name of the object's child; nil when there is none.
	Live *v1alpha1.AutoscalingPolicy
	// Refused is why its child cannot be made; empty when it can.
	Refused string
}

// FleetOf is what controls a child; nil for a policy that a user wrote.
func FleetOf(p *v1alpha1.AutoscalingPolicy) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil || owner.Kind != v1alpha1.KindAutoscalingPolicy {
		return nil
	}
	if gv, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || gv.Group != v1alpha1.Group {
		return nil
	}
	return owner
}

// FleetSelector of a policy, or what the user has to mend in it.
func FleetSelector(p *v1alpha1.AutoscalingPolicy) (labels.Selector, *Violation) {
	selector, err := metav1.LabelSelectorAsSelector(&p.Spec.TargetSelector.LabelSelector)
	if err != nil {
		return nil, &Violation{
			v1alpha1.ConditionTargetFound, v1alpha1.ReasonSelectorInvalid,
			"correct spec.targetSelector: " + err.Error(),
		}
	}
	return selector, nil
}

// FleetRef is how a child of the fleet names an object.
func FleetRef(p *v1alpha1.AutoscalingPolicy, name string) v1alpha1.ScaleTargetRef {
	kind := p.Spec.TargetSelector.Kind
	apiVersion := "compute.functionmesh.io/v1alpha1"
	if kind == kindStatefulSet {
		apiVersion = "apps/v1"
	}
	return v1alpha1.ScaleTargetRef{APIVersion: apiVersion, Kind: string(kind), Name: name}
}

// NewFleetWorld says what becomes of the objects that match, given all policies and all objects of the namespace and
// kind. A policy that names an object takes precedence, whatever its age and mode; of two fleets the older.
func NewFleetWorld(p *v1alpha1.AutoscalingPolicy, policies []v1alpha1.AutoscalingPolicy,
	objects []Selectable,
) FleetWorld {
	w := FleetWorld{Policy: p}
	selector, violation := FleetSelector(p)
	if violation != nil {
		w.Violation = violation
		return w
	}
	others := newOthers(p, policies)
	w.Children = others.children
	for _, object := range objects {
		if !selector.Matches(labels.Set(object.Labels)) || !selectable(p.Spec.TargetSelector.Kind, object) {
			continue
		}
		matched := FleetObject{Name: object.Name, Live: others.byName[ChildName(p.Name, FleetRef(p, object.Name))]}
		matched.LeftBecause, matched.InMesh = others.claim(object)
		w.Matched = append(w.Matched, matched)
	}
	slices.SortFunc(w.Matched, func(a, b FleetObject) int { return strings.Compare(a.Name, b.Name) })
	return w
}

// selectable says that a fleet may mean the object. Of StatefulSets names tell nothing: with a jobName the function
// worker calls them <jobName>-<hash>.
func selectable(kind v1alpha1.SelectedKind, object Selectable) bool {
	return kind != kindStatefulSet || object.OfWorker
}

// others are the policies of the fleet's namespace, as the fleet sees them.
type others struct {
	// naming is the user's policy for each object of the fleet's kind that has one.
	naming map[string]string
	// older fleets of the same kind, the oldest first.
	older    []olderFleet
	byName   map[string]*v1alpha1.AutoscalingPolicy
	children []*v1alpha1.AutoscalingPolicy
}

type olderFleet struct {
	policy   *v1alpha1.AutoscalingPolicy
	selector labels.Selector
}

func newOthers(p *v1alpha1.AutoscalingPolicy, policies []v1alpha1.AutoscalingPolicy) others {
	o := others{naming: map[string]string{}, byName: map[string]*v1alpha1.AutoscalingPolicy{}}
	meant := schema.FromAPIVersionAndKind(FleetRef(p, "").APIVersion, string(p.Spec.TargetSelector.Kind)).GroupKind()
	for i := range policies {
		other := &policies[i]
		o.byName[other.Name] = other
		owner, ref := FleetOf(other), other.Spec.ScaleTargetRef
		switch {
		case owner != nil:
			if owner.UID == p.UID {
				o.children = append(o.children, other)
			}
		case other.Spec.TargetSelector != nil:
			o.addOlder(p, other)
		case schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == meant:
			if name, taken := o.naming[ref.Name]; !taken || other.Name < name {
				o.naming[ref.Name] = other.Name
			}
		}
	}
	slices.SortFunc(o.older, func(a, b olderFleet) int { return ByAge(a.policy, b.policy) })
	return o
}

// addOlder takes in another fleet if it goes before this one. One that cannot be read governs nothing.
func (o *others) addOlder(p, other *v1alpha1.AutoscalingPolicy) {
	if other.Name == p.Name || other.DeletionTimestamp != nil ||
		other.Spec.TargetSelector.Kind != p.Spec.TargetSelector.Kind || ByAge(other, p) > 0 {
		return
	}
	if selector, violation := FleetSelector(other); violation == nil {
		o.older = append(o.older, olderFleet{other, selector})
	}
}

// ByAge orders policies by when they were made, then by name and namespace where two are of the same second.
func ByAge(a, b *v1alpha1.AutoscalingPolicy) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name),
		strings.Compare(a.Namespace, b.Namespace))
}

// claim says who has the object instead of the fleet.
func (o *others) claim(object Selectable) (because string, inMesh bool) {
	if name, named := o.naming[object.Name]; named {
		return fmt.Sprintf("AutoscalingPolicy %s names it", name), false
	}
	if strings.HasPrefix(object.Controller, kindFunctionMesh+" ") {
		return fmt.Sprintf("it belongs to %s: name its component in a policy of its own", object.Controller), true
	}
	for _, fleet := range o.older {
		if fleet.selector.Matches(labels.Set(object.Labels)) {
			return fmt.Sprintf("the older AutoscalingPolicy %s selects it", fleet.policy.Name), false
		}
	}
	return "", false
}

// isTaken says that the name of the object's child belongs to a policy that the fleet does not control.
func (object FleetObject) isTaken(p *v1alpha1.AutoscalingPolicy) bool {
	return object.Live != nil && !metav1.IsControlledBy(object.Live, p)
}

// isLeaving says that a child is being deleted, of this fleet or of one that had its name before: it is recreated once
// it is gone.
func (object FleetObject) isLeaving(p *v1alpha1.AutoscalingPolicy) bool {
	if object.Live == nil {
		return false
	}
	owner := FleetOf(object.Live)
	return owner != nil && owner.Name == p.Name && (object.Live.DeletionTimestamp != nil || owner.UID != p.UID)
}

// FleetPlan is what is to be written for a fleet, except its status.
type FleetPlan struct {
	// Apply are children that are missing, or not as they should be.
	Apply []ChildPlan
	// Remove are children of objects that are gone, or not the fleet's any more.
	Remove []*v1alpha1.AutoscalingPolicy
}

// ChildPlan is a child to apply.
type ChildPlan struct {
	Object string
	Child  *ChildApplyConfiguration
	// Anew says that there is no such policy yet. Then one that came meanwhile is not to be overwritten.
	Anew bool
}

// NewFleetPlan says what to write. While it cannot be told what matches, all stays as it is.
func NewFleetPlan(w FleetWorld) (FleetPlan, error) {
	var actions FleetPlan
	if w.Violation != nil {
		return actions, nil
	}
	template, err := newChildTemplate(w.Policy)
	if err != nil {
		return actions, err
	}
	keep := map[string]bool{}
	for _, object := range w.Matched {
		if object.LeftBecause != "" {
			continue
		}
		ref := FleetRef(w.Policy, object.Name)
		keep[ChildName(w.Policy.Name, ref)] = true
		if object.isTaken(w.Policy) || object.isLeaving(w.Policy) {
			continue
		}
		current, err := template.isCurrent(object.Live, ref)
		if err != nil {
			return actions, err
		}
		if !current {
			actions.Apply = append(actions.Apply, ChildPlan{object.Name, template.child(object.Live, ref), object.Live == nil})
		}
	}
	for _, child := range w.Children {
		if !keep[child.Name] && !w.Awaited[child.Name] && child.DeletionTimestamp == nil {
			actions.Remove = append(actions.Remove, child)
		}
	}
	return actions, nil
}
