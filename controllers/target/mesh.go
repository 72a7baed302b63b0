// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// meshComponent finds an entry of a FunctionMesh. At each event Function Mesh overwrites the child, the object that it
// creates from the entry. So the entry says what to run, and replicas last only when they are written there.
//
// Source: Function Mesh's controllers/function_mesh.go, run on its v0.27.2.
func (f *Finder) meshComponent(ctx context.Context, namespace string, spec v1alpha1.AutoscalingPolicySpec) (Found,
	error,
) {
	ref := spec.ScaleTargetRef
	if !f.reader.Installed(cluster.KindFunctionMesh) {
		return Found{Unsupported: NotInstalled(cluster.KindFunctionMesh)}, nil
	}
	mesh, err := f.reader.Object(ctx, cluster.KindFunctionMesh, namespace, ref.Name)
	if err != nil || mesh == nil {
		return Found{}, err
	}
	childRef := plan.MeshChild(ref)
	entry, invalid := FindEntry(mesh, ref.Component)
	if invalid != "" {
		return Found{Target: &plan.Target{Ref: childRef, Scaling: plan.ByMesh, Invalid: invalid}}, nil
	}
	child, err := f.reader.Object(ctx, childRef.Kind, namespace, childRef.Name)
	if err != nil {
		return Found{}, err
	}
	// The child as Function Mesh creates it, whether or not it exists yet.
	target, err := f.target(ctx, map[string]any{
		"metadata": map[string]any{"namespace": namespace, "name": childRef.Name}, "spec": entry.Fields,
	}, childRef, spec)
	if err != nil {
		return Found{}, err
	}
	target.Scaling = plan.ByMesh
	if target.Invalid != "" {
		target.Invalid = fmt.Sprintf("%s, in its entry there: %s", plan.Name(spec), target.Invalid)
	}
	if child != nil {
		target.UID = string(child.GetUID())
		target.Unmanaged, target.UnmanagedBy = unmanaged(child), child.GetKind()+" "+child.GetName()
	}
	if unmanaged(mesh) {
		target.Unmanaged, target.UnmanagedBy = true, mesh.GetKind()+" "+mesh.GetName()
	}
	return Found{Target: target}, nil
}

func unmanaged(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[cluster.AnnotationManaged] == "false"
}

// MeshEntry is an entry in one of a FunctionMesh's lists.
type MeshEntry struct {
	// List is the field of the mesh's spec, Index the position of the entry in it.
	List   string
	Index  int
	Fields map[string]any
}

// Replicas of the entry; nil when it has none.
func (e MeshEntry) Replicas() *int32 {
	number, found, err := unstructured.NestedInt64(e.Fields, "replicas")
	if err != nil || !found {
		return nil
	}
	replicas := int32(number) //nolint:gosec // the field is an int32 of the definition
	return &replicas
}

// entryLists are the lists of a FunctionMesh's spec that hold entries.
func entryLists() []string {
	var lists []string
	for _, kind := range cluster.WorkloadKinds() {
		lists = append(lists, plan.MeshList(v1alpha1.WorkloadKind(kind)))
	}
	return lists
}

// FindEntry returns the entry of that name, or why there is not exactly one. Function Mesh does not check that names
// are unique, and two entries of a name would share one child.
func FindEntry(mesh *unstructured.Unstructured, component v1alpha1.MeshComponent) (found MeshEntry, invalid string) {
	list := plan.MeshList(component.Kind)
	entries, _, _ := unstructured.NestedFieldNoCopy(mesh.Object, "spec", list)
	all, _ := entries.([]any)
	var names []string
	for i := range all {
		fields, _ := all[i].(map[string]any)
		name, _ := fields["name"].(string)
		names = append(names, name)
		if name == component.Name {
			found = MeshEntry{List: list, Index: i, Fields: fields}
		}
	}
	switch first := slices.Index(names, component.Name); {
	case first < 0:
		return MeshEntry{},
			fmt.Sprintf("FunctionMesh %s has no entry %s in spec.%s%s: add it, or create another policy with the right "+
				"scaleTargetRef.component", mesh.GetName(), component.Name, list, entryNames(names))
	case first != found.Index:
		return MeshEntry{},
			fmt.Sprintf("FunctionMesh %s has two entries %s in spec.%s, which share one %s: rename one of them",
				mesh.GetName(), component.Name, list, component.Kind)
	}
	return found, ""
}

// entryNames says which entries the list has.
func entryNames(names []string) string {
	const most = 5
	switch {
	case len(names) == 0:
		return ", which is empty"
	case len(names) > most:
		return fmt.Sprintf(", which has %s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	default:
		return ", which has " + strings.Join(names, ", ")
	}
}
