// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// testEntry is an entry of a FunctionMesh that does what testFunction does.
func testEntry(name string) map[string]any {
	entry := spec(testFunction())
	entry["name"] = name
	return entry
}

// testMesh is FunctionMesh etl with the Functions tag and resize.
func testMesh() *unstructured.Unstructured {
	mesh := meshObject("FunctionMesh")
	mesh.SetNamespace(testNamespace)
	mesh.SetName("etl")
	mesh.Object["spec"] = map[string]any{"functions": []any{testEntry("tag"), testEntry("resize")}}
	return mesh
}

// testChild is what Function Mesh makes of entry resize.
func testChild() *unstructured.Unstructured {
	child := testFunction()
	child.SetName("etl-resize")
	child.Object["spec"] = testEntry("resize")
	yes := true
	child.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "FunctionMesh", Name: "etl", UID: "mesh", Controller: &yes,
	}})
	child.Object["status"] = map[string]any{
		"selector": "name=etl-resize", "replicas": int64(3),
		"conditions": map[string]any{},
	}
	return child
}

// componentPolicy scales entry resize of FunctionMesh etl.
func componentPolicy() *v1alpha1.AutoscalingPolicy {
	p := testPolicy()
	p.Spec.ScaleTargetRef.Kind, p.Spec.ScaleTargetRef.Name = "FunctionMesh", "etl"
	p.Spec.ScaleTargetRef.Component = v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadFunction, Name: "resize"}
	return p
}

// entriesOf the Functions of a FunctionMesh, to be changed.
func entriesOf(mesh *unstructured.Unstructured) []any {
	entries, _ := spec(mesh)["functions"].([]any)
	return entries
}

func entryOf(mesh *unstructured.Unstructured, index int) map[string]any {
	entry, _ := entriesOf(mesh)[index].(map[string]any)
	return entry
}
