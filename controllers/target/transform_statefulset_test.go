// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestTransformStatefulSet(t *testing.T) {
	ours := fixture.RecordedStatefulSets(t)["pf-public-default-resize"]
	ours.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "n"})
	c := cached(t, ours.DeepCopy())
	require.Equal(t, metav1.ObjectMeta{
		Name: ours.GetName(), Namespace: ours.GetNamespace(), UID: ours.GetUID(), Generation: ours.GetGeneration(),
		ResourceVersion: ours.GetResourceVersion(), Labels: ours.GetLabels(),
	}, c.ObjectMeta)
	require.Equal(t, "public/default/resize", c.pods.instance.function.FullName())
	require.True(t, c.pods.instance.scrapable)
	require.NotEmpty(t, c.pods.selector)

	mesh := ours.DeepCopy()
	mesh.SetName("resize-function")
	fixture.SetOwner(mesh, "compute.functionmesh.io/v1alpha1", cluster.KindFunction, "resize")
	require.NoError(t, unstructured.SetNestedField(mesh.Object, "noon", "spec", "template", "metadata", "annotations",
		cluster.AnnotationRestartedAt))
	c = cached(t, mesh)
	require.Equal(t, "Function resize", ControllerOf(c))
	require.Equal(t, &pods{
		replicas: new(int32(2)), reported: new(int32(2)), ready: c.pods.ready, grace: c.pods.grace, restartedAt: "noon",
	}, c.pods, "neither a function nor a selector: no policy scales it")
	require.Empty(t, c.Labels)

	database := ours.DeepCopy()
	database.SetName("postgres")
	fixture.SetCommand(t, database, []any{"postgres"})
	c = cached(t, database)
	require.Equal(t, new(int32(2)), c.Replicas())
	require.Nil(t, c.pods.instance)
	require.Empty(t, c.Labels)

	other := cluster.NewUnstructured(cluster.KindStatefulSet)
	other.Object["spec"] = "no object"
	kept, err := Transform(other)
	require.NoError(t, err)
	require.ErrorContains(t, kept.(*Cached).Invalid(), "decoding StatefulSet: ")
}

func TestAnUpdateStrategyThatWaitsReplacesNoPods(t *testing.T) {
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
			c := cached(t, set)
			require.Equal(t, strings.HasPrefix(name, "for nothing"), c.pods.replacing)
			require.Equal(t, "b", c.Rollout())
		})
	}
}
