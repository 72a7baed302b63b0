// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

func TestOfAChildItsSelectorIsKept(t *testing.T) {
	child := testChild()
	_, err := slim(child)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"selector": "name=etl-resize"}, child.Object["status"])
	child.Object["status"] = map[string]any{"selector": "name=etl-resize", "replicas": int64(3)}
	child.SetOwnerReferences(nil)
	_, err = slim(child)
	require.NoError(t, err)
	require.NotContains(t, child.Object, "status", "nobody reads it of others")
}

func TestWhatIsKeptOfAMeshIsAllThatIsDecodedOfItsEntries(t *testing.T) {
	whole := &unstructured.Unstructured{}
	require.NoError(t, whole.UnmarshalJSON([]byte(wholeFunction)))
	mesh := newWorkload(kindFunctionMesh)
	mesh.SetName("etl")
	mesh.SetGeneration(3)
	mesh.SetAnnotations(map[string]string{annotationManaged: "true", corev1.LastAppliedConfigAnnotation: "{}"})
	mesh.Object["spec"] = map[string]any{
		"functions": []any{spec(
			whole.DeepCopy())}, "sinks": []any{spec(whole.DeepCopy())}, "sources": []any{spec(whole.DeepCopy())},
		"other": "hunter2",
	}
	mesh.Object["status"] = map[string]any{"functionConditions": map[string]any{}}
	before := mesh.DeepCopy()
	kept, err := slim(mesh)
	require.NoError(t, err)
	require.Same(t, mesh, kept)
	text, err := json.Marshal(mesh.Object)
	require.NoError(t, err)
	for _, gone := range []string{"hunter2", "resources", "image", "status", "last-applied"} {
		require.NotContains(t, string(text), gone)
	}
	require.Equal(t, int64(3), mesh.GetGeneration())
	require.Equal(t, "true", mesh.GetAnnotations()[annotationManaged])
	for _, kind := range workloadKinds() {
		component := v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadKind(kind), Name: "f"}
		was, invalid := findEntry(before, component)
		require.Empty(t, invalid)
		is, invalid := findEntry(mesh, component)
		require.Empty(t, invalid)
		wanted, err := decodeWorkload(kind, map[string]any{"spec": was.fields})
		require.NoError(t, err)
		found, err := decodeWorkload(kind, map[string]any{"spec": is.fields})
		require.NoError(t, err)
		delete(wanted.Spec.Pod.Annotations, "checksum/config")
		require.Equal(t, wanted, found)
	}
}
