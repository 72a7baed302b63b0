// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestTransformKeepsFieldsOfAMesh(t *testing.T) {
	whole := &unstructured.Unstructured{}
	require.NoError(t, whole.UnmarshalJSON([]byte(wholeFunction)))
	mesh := cluster.NewUnstructured(cluster.KindFunctionMesh)
	mesh.SetName("etl")
	mesh.SetGeneration(3)
	mesh.SetAnnotations(map[string]string{cluster.AnnotationManaged: "true", corev1.LastAppliedConfigAnnotation: "{}"})
	mesh.Object["spec"] = map[string]any{
		"functions": []any{fixture.Spec(whole), map[string]any{"name": "wrong", "replicas": int64(3), "input": "a"}},
		"sinks":     []any{fixture.Spec(whole)}, "sources": []any{fixture.Spec(whole)}, "other": "hunter2",
	}
	mesh.Object["status"] = map[string]any{"functionConditions": map[string]any{}, "observedGeneration": int64(2)}
	c := cached(t, mesh)
	require.Equal(t, []int64{3, 2}, []int64{c.Generation, c.observed})
	require.Equal(t, map[string]string{cluster.AnnotationManaged: "true"}, c.Annotations)
	for _, kind := range cluster.WorkloadKinds() {
		entry, err := FindEntry(c, v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadKind(kind), Name: "f"})
		require.NoError(t, err)
		require.NoError(t, entry.invalid)
		require.Equal(t, Decode(whole).workload.workloadSpec, entry.fields.workloadSpec)
	}
	entry, err := FindEntry(c, v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadFunction, Name: "wrong"})
	require.NoError(t, err)
	require.ErrorContains(t, entry.invalid, "decoding Function: ")
	require.Equal(t, new(int32(3)), entry.Replicas(), "replicas of entries that no policy scales are written, too")
}
