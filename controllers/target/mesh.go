// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// meshComponent finds an entry of a FunctionMesh. At each event Function Mesh overwrites the child, the object that it
// creates from the entry. So the entry says what to run, and replicas last only when they are written there.
//
// Source: Function Mesh's controllers/function_mesh.go, run on its v0.27.2.
func (f *Finder) meshComponent(ctx context.Context, namespace string, spec v1alpha1.AutoscalingPolicySpec) (
	*plan.Target, error,
) {
	ref := spec.ScaleTargetRef
	if !f.reader.Installed(cluster.KindFunctionMesh) {
		return nil, notInstalled(cluster.KindFunctionMesh)
	}
	mesh, err := f.reader.Object(ctx, cluster.KindFunctionMesh, namespace, ref.Name)
	if err != nil || mesh == nil {
		return nil, err
	}
	childRef := plan.MeshChild(ref)
	entry, err := FindEntry(mesh, ref.Component)
	if err != nil {
		return &plan.Target{Ref: childRef, Scaling: plan.ByMesh}, err
	}
	child, err := f.reader.Object(ctx, childRef.Kind, namespace, childRef.Name)
	if err != nil {
		return nil, err
	}
	// The child as Function Mesh creates it, whether or not it exists yet.
	created := Cached{invalid: entry.invalid, workload: entry.fields}
	created.Kind, created.Namespace, created.Name = childRef.Kind, namespace, childRef.Name
	target, invalid := f.target(ctx, &created, childRef, spec)
	if IsInvalid(invalid) {
		invalid = Invalidf("%s, in its entry there: %s", plan.Name(spec), invalid)
	}
	target.Scaling = plan.ByMesh
	if target.Replicas == nil {
		target.Replicas = entry.childReplicas()
	}
	target.Least = entry.least()
	if target.MissingChild, err = f.reader.missingChild(ctx, mesh, entry, child); err != nil {
		return nil, err
	}
	if child != nil {
		target.UID = string(child.UID)
	}
	for _, object := range []*Cached{child, mesh} {
		if object != nil && isUnmanaged(object.Annotations) {
			target.Unmanaged = object.Kind + " " + object.Name
		}
	}
	return target, invalid
}

func isUnmanaged(annotations map[string]string) bool {
	return annotations[cluster.AnnotationManaged] == "false"
}

// MeshEntry is an entry in one of a FunctionMesh's lists.
type MeshEntry struct {
	// List is the field of the mesh's spec, Index the position of the entry in it.
	List  string
	Index int

	// invalid is why the entry does not have the form of its kind; fields are never nil.
	invalid error
	fields  *workload
}

// Name of the entry; empty when it has none.
func (e MeshEntry) Name() string { return e.fields.Name }

// Replicas of the entry; nil when it has none.
func (e MeshEntry) Replicas() *int32 { return e.fields.Replicas }

// FieldsIn are all fields of the entry in the mesh that it was found in.
func (e MeshEntry) FieldsIn(mesh *unstructured.Unstructured) map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(mesh.Object, "spec", e.List)
	fields, _ := list.([]any)[e.Index].(map[string]any)
	return fields
}

// childReplicas are those that the entry gives its child. Without replicas Function Mesh's webhook sets them at each
// write.
func (e MeshEntry) childReplicas() *int32 {
	return cmp.Or(e.fields.Replicas, e.fields.MinReplicas, new(int32(1)))
}

// least is how many replicas the child has to have when Function Mesh creates it: its webhook refuses 0, and fewer than
// minReplicas.
func (e MeshEntry) least() int32 {
	return max(1, *cmp.Or(e.fields.MinReplicas, new(int32)))
}

// missingChild is the entry that keeps the child from being created, or from getting the replicas of its own entry: the
// first one, up to its own, whose child does not exist. Nil where the child is up to date, or nothing is known to be
// missing.
func (r *Reader) missingChild(ctx context.Context, mesh *Cached, own MeshEntry, child *Cached) (*plan.MissingChild,
	error,
) {
	wanted := own.childReplicas()
	if child != nil {
		if has := child.Replicas(); has != nil && *has == *wanted {
			return nil, nil //nolint:nilnil // none is a result
		}
	}
	for _, kind := range meshOrder() {
		entries := entriesOf(mesh, kind)
		if own.List == plan.MeshList(kind) {
			entries = entries[:own.Index+1]
		}
		for _, entry := range entries {
			missing, err := r.lacksChild(ctx, mesh, kind, entry)
			if missing != nil || err != nil {
				return missing, err
			}
		}
		if own.List == plan.MeshList(kind) {
			break
		}
	}
	return nil, nil //nolint:nilnil // none is a result
}

// lacksChild is the entry if its child is known to be missing.
func (r *Reader) lacksChild(ctx context.Context, mesh *Cached, kind v1alpha1.WorkloadKind, entry MeshEntry) (
	*plan.MissingChild, error,
) {
	if entry.Name() == "" || !r.Installed(string(kind)) {
		return nil, nil //nolint:nilnil // none is a result
	}
	component := v1alpha1.MeshComponent{Kind: kind, Name: entry.Name()}
	child, err := r.childOf(ctx, mesh, component)
	if child != nil || err != nil {
		return nil, err
	}
	return &plan.MissingChild{Component: component, Replicas: *entry.childReplicas(), Least: entry.least()}, nil
}

func (r *Reader) childOf(ctx context.Context, mesh *Cached, component v1alpha1.MeshComponent) (*Cached, error) {
	ref := plan.MeshChild(v1alpha1.ScaleTargetRef{Name: mesh.Name, Component: component})
	return r.Object(ctx, ref.Kind, mesh.Namespace, ref.Name)
}

// Autoscaled calls visit with each entry that has other replicas than its component, by an autoscaler that Function
// Mesh runs. A change of the mesh makes Function Mesh reset such a component, which it otherwise spares. There are none
// before it has acted on the last change, which may have been of an entry's replicas.
//
// Source: Function Mesh's UpdateFunctionMesh (controllers/function_mesh.go): newGeneration.
func (r *Reader) Autoscaled(ctx context.Context, mesh *Cached,
	visit func(entry MeshEntry, replicas int32),
) error {
	if mesh.observed != mesh.Generation {
		return nil
	}
	for _, kind := range meshOrder() {
		for _, entry := range entriesOf(mesh, kind) {
			if entry.fields.MaxReplicas == nil {
				continue
			}
			child, err := r.childOf(ctx, mesh, v1alpha1.MeshComponent{Kind: kind, Name: entry.Name()})
			if err != nil {
				return err
			}
			if child == nil {
				continue
			}
			if has := child.Replicas(); has != nil && *has != *entry.childReplicas() {
				visit(entry, *has)
			}
		}
	}
	return nil
}

// meshOrder is the order in which Function Mesh writes children. It stops at the first that fails.
//
// Source: Function Mesh's UpdateFunctionMesh (controllers/function_mesh.go).
func meshOrder() []v1alpha1.WorkloadKind {
	return []v1alpha1.WorkloadKind{v1alpha1.WorkloadFunction, v1alpha1.WorkloadSource, v1alpha1.WorkloadSink}
}

func entriesOf(mesh *Cached, kind v1alpha1.WorkloadKind) []MeshEntry {
	return mesh.entries[plan.MeshList(kind)]
}

func decodeEntries(mesh map[string]any) map[string][]MeshEntry {
	entries := map[string][]MeshEntry{}
	for _, kind := range cluster.WorkloadKinds() {
		list := plan.MeshList(v1alpha1.WorkloadKind(kind))
		fields, _, _ := unstructured.NestedFieldNoCopy(mesh, "spec", list)
		all, _ := fields.([]any)
		for i := range all {
			child := Cached{}
			named, _ := all[i].(map[string]any)
			err := decodeWorkload(&child, map[string]any{"spec": all[i]})
			if err != nil {
				err = fmt.Errorf("decoding %s: %w", kind, err)
			}
			child.workload.Name, _ = named["name"].(string) // whatever else the entry has
			entries[list] = append(entries[list], MeshEntry{List: list, Index: i, invalid: err, fields: child.workload})
		}
	}
	return entries
}

// FindEntry returns the entry of that name. A plan.Violation is why there is not exactly one. Function Mesh does not
// check that names are unique, and two entries of a name would share one child.
func FindEntry(mesh *Cached, component v1alpha1.MeshComponent) (found MeshEntry, err error) {
	list := plan.MeshList(component.Kind)
	var names []string
	for _, entry := range entriesOf(mesh, component.Kind) {
		names = append(names, entry.Name())
		if entry.Name() == component.Name {
			found = entry
		}
	}
	switch first := slices.Index(names, component.Name); {
	case first < 0:
		return MeshEntry{},
			Invalidf("FunctionMesh %s has no entry %s in spec.%s%s: add it, or create another policy with the right "+
				"scaleTargetRef.component", mesh.Name, component.Name, list, entryNames(names))
	case first != found.Index:
		return MeshEntry{},
			Invalidf("FunctionMesh %s has two entries %s in spec.%s, which share one %s: rename one of them",
				mesh.Name, component.Name, list, component.Kind)
	}
	return found, nil
}

// entryNames says which entries the list has.
func entryNames(names []string) string {
	if len(names) == 0 {
		return ", which is empty"
	}
	return ", which has " + plan.Enumerate(names, 5, ", ")
}
