// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// awaitEntryMax waits until the first entry of the mesh and its Function have this maxReplicas; nil for none.
func awaitEntryMax(t *testing.T, m *stage.Mesh, want any) {
	t.Helper()
	f := m.Functions[0]
	f.Await(t, fmt.Sprintf("maxReplicas %v", want), func(ctx context.Context) (bool, string, error) {
		object := m.Object()
		if err := scene.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, "", err
		}
		entries, _, _ := unstructured.NestedSlice(object.Object, "spec", "functions")
		first, _ := entries[0].(map[string]any)
		child, err := maxReplicasOf(ctx, f)
		return first["maxReplicas"] == want &&
			child == want, fmt.Sprintf("%v in the entry, %v in the Function", first["maxReplicas"], child), err
	})
}

func TestTakeOverAndRestoreTheAutoscalerOfAnEntryOfAMesh(t *testing.T) {
	t.Parallel()
	const entry, replicas, most = "taken-entry", 3, int64(7)
	m := addMesh(t, "etl-taken", stage.FunctionConfig{
		Name: entry, ServiceTime: 10 * time.Millisecond, Replicas: replicas, Edit: func(function *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedField(function.Object, most, "spec", "maxReplicas"))
		},
	})
	f := m.Functions[0]
	own := f.Name + "-function"
	awaitAutoscalers(t, f, map[string]bool{own: true})
	awaitEntryMax(t, m, most)
	p := componentPolicy(m, f, entry)
	p.Spec.MinReplicas, p.Spec.ConflictPolicy = new(int32(replicas)), v1alpha1.ConflictTakeOver
	addPolicy(t, p)
	awaitAutoscalers(t, f, map[string]bool{own: false})
	awaitEntryMax(t, m, nil)
	f.AwaitConditions(t, "Ready=True/Scaling")

	require.NoError(t, scene.Client.Delete(t.Context(), p))
	scene.AwaitGone(t, newPolicy(p.Name))
	awaitEntryMax(t, m, most)
	awaitAutoscalers(t, f, map[string]bool{own: true})
	requireEntries(t, m, replicas)
	requireUntouched(t, f, replicas)
}
