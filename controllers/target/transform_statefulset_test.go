// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestTransformStatefulSet(t *testing.T) {
	keep := func(object *unstructured.Unstructured) (map[string]any, string) {
		kept, err := Transform(object.DeepCopy())
		require.NoError(t, err)
		u, ok := kept.(*unstructured.Unstructured)
		require.True(t, ok)
		text, err := json.Marshal(u.Object)
		require.NoError(t, err)
		return u.Object, string(text)
	}
	ours := fixture.RecordedStatefulSets(t)["pf-public-default-resize"]
	ours.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "n"})
	kept, text := keep(ours)
	before, err := decodeStatefulSet(ours.Object)
	require.NoError(t, err)
	after, err := decodeStatefulSet(kept)
	require.NoError(t, err)
	delete(before.Metadata.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
	require.Equal(t, before, after)
	for _, gone := range []string{"last-applied", "tolerations", "imagePullPolicy", "podManagementPolicy"} {
		require.NotContains(t, text, gone)
	}
	for _, stays := range []string{
		`"uid"`, `"selector"`, `"currentRevision"`, `"labels"`, `"generation"`,
		cluster.AnnotationPort,
	} {
		require.Contains(t, text, stays)
	}

	mesh := ours.DeepCopy()
	mesh.SetName("resize-function")
	yes := true
	mesh.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "compute.functionmesh.io/v1alpha1", Kind: cluster.KindFunction,
		Name: "resize", UID: "1", Controller: &yes,
	}})
	_, text = keep(mesh)
	for _, gone := range []string{
		"--function_details", `"labels"`, `"annotations"`, `"template"`, `"updateStrategy"`, `"selector"`,
	} {
		require.NotContains(t, text, gone)
	}
	require.Contains(t, text, `"replicas"`)
	require.Contains(t, text, `"ownerReferences"`)
	require.NoError(t, unstructured.SetNestedField(mesh.Object, "noon", "spec", "template", "metadata", "annotations",
		cluster.AnnotationRestartedAt))
	kept, _ = keep(mesh)
	require.Equal(t, "noon", restartedAt(&unstructured.Unstructured{Object: kept}))

	database := ours.DeepCopy()
	database.SetName("postgres")
	fixture.SetCommand(t, database, []any{"postgres"})
	_, text = keep(database)
	require.Contains(t, text, `"replicas":2`)
	require.NotContains(t, text, "postgres\"]", "the command is dropped")
	require.NotContains(t, text, `"labels"`)
	require.Less(t, len(text), 800)

	other := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": cluster.KindStatefulSet,
		"spec": "no object",
	}}
	kept, _ = keep(other)
	require.Equal(t, "no object", kept["spec"])
}

func TestTransformKeepsAnUpdateStrategyThatWaits(t *testing.T) {
	for name, strategy := range map[string]map[string]any{
		"for a user":             {"type": "OnDelete"},
		"at a partition":         {"type": "RollingUpdate", "rollingUpdate": map[string]any{"partition": int64(2)}},
		"for nothing":            {"type": "RollingUpdate", "rollingUpdate": map[string]any{"partition": int64(0)}},
		"for nothing, unwritten": {},
	} {
		t.Run(name, func(t *testing.T) {
			set := fixture.RecordedStatefulSets(t)["pf-public-default-resize"]
			fixture.Spec(set)["updateStrategy"] = strategy
			set.Object["status"] = map[string]any{
				"currentRevision": "a", "updateRevision": "b", "replicas": int64(2), "updatedReplicas": int64(1),
			}
			before := updating(set)
			_, err := Transform(set)
			require.NoError(t, err)
			require.Equal(t, before, updating(set))
			require.Equal(t, strings.HasPrefix(name, "for nothing"), before)
		})
	}
}
