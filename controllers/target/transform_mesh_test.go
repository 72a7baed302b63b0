// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestTransformKeepsDecodedFieldsOfAMesh(t *testing.T) {
	whole := &unstructured.Unstructured{}
	require.NoError(t, whole.UnmarshalJSON([]byte(wholeFunction)))
	mesh := cluster.NewUnstructured(cluster.KindFunctionMesh)
	mesh.SetName("etl")
	mesh.SetGeneration(3)
	mesh.SetAnnotations(map[string]string{cluster.AnnotationManaged: "true", corev1.LastAppliedConfigAnnotation: "{}"})
	mesh.Object["spec"] = map[string]any{
		"functions": []any{fixture.Spec(
			whole.DeepCopy())}, "sinks": []any{fixture.Spec(whole.DeepCopy())}, "sources": []any{fixture.Spec(whole.DeepCopy())},
		"other": "hunter2",
	}
	mesh.Object["status"] = map[string]any{"functionConditions": map[string]any{}, "observedGeneration": int64(2)}
	before := mesh.DeepCopy()
	kept, err := Transform(mesh)
	require.NoError(t, err)
	require.Same(t, mesh, kept)
	text, err := json.Marshal(mesh.Object)
	require.NoError(t, err)
	for _, gone := range []string{"hunter2", "resources", "image", "functionConditions", "last-applied"} {
		require.NotContains(t, string(text), gone)
	}
	require.Equal(t, int64(3), mesh.GetGeneration())
	require.Equal(t, map[string]any{"observedGeneration": int64(2)}, mesh.Object["status"])
	require.Equal(t, "true", mesh.GetAnnotations()[cluster.AnnotationManaged])
	for _, kind := range cluster.WorkloadKinds() {
		component := v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadKind(kind), Name: "f"}
		was, err := FindEntry(before, component)
		require.NoError(t, err)
		is, err := FindEntry(mesh, component)
		require.NoError(t, err)
		wanted, err := decodeWorkload(kind, map[string]any{"spec": was.Fields})
		require.NoError(t, err)
		found, err := decodeWorkload(kind, map[string]any{"spec": is.Fields})
		require.NoError(t, err)
		delete(wanted.Spec.Pod.Annotations, "checksum/config")
		require.Equal(t, wanted, found)
	}
}
