// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// meshTo is componentPolicy with that minReplicas, which may scale to zero at once.
func meshTo(m *stage.Mesh, f *stage.Function, entry string, minimum int32) *v1alpha1.AutoscalingPolicy {
	p := componentPolicy(m, f, entry)
	p.Spec.MinReplicas = &minimum
	p.Spec.Behavior.ScaleDown.CooldownPeriodSeconds = new(int32(0))
	return p
}

// pairOf is a mesh of two idle entries, with their names.
func pairOf(t *testing.T, name string) (m *stage.Mesh, first, second string) {
	t.Helper()
	first, second = name+"-first", name+"-second"
	return addMesh(t, name, stage.FunctionConfig{Name: first, ServiceTime: 25 * time.Millisecond},
		stage.FunctionConfig{Name: second, ServiceTime: 25 * time.Millisecond}), first, second
}

// entriesAre waits until the entries of the mesh have these replicas, -1 for none.
func entriesAre(t *testing.T, m *stage.Mesh, want ...int64) {
	t.Helper()
	m.Functions[0].Await(t, fmt.Sprintf("entries of %s with %v replicas", m.Name, want),
		func(ctx context.Context) (bool, string, error) {
			found, err := replicasOfEntries(ctx, m)
			return fmt.Sprint(found) == fmt.Sprint(want), fmt.Sprint(found), err
		})
}

// requireEntries checks that the entries of the mesh have these replicas now.
func requireEntries(t *testing.T, m *stage.Mesh, want ...int64) {
	t.Helper()
	found, err := replicasOfEntries(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, want, found)
}

func replicasOfEntries(ctx context.Context, m *stage.Mesh) ([]int64, error) {
	object := m.Object()
	err := scene.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
	return entriesOf(object), err
}

// entriesOf are the replicas of a mesh's entries, -1 for none.
func entriesOf(mesh *unstructured.Unstructured) (found []int64) {
	entries, _, _ := unstructured.NestedSlice(mesh.Object, "spec", "functions")
	for _, entry := range entries {
		replicas, ok := entry.(map[string]any)["replicas"].(int64)
		if !ok {
			replicas = -1
		}
		found = append(found, replicas)
	}
	return found
}

// setEntry writes the replicas of an entry as kubectl edit does.
func setEntry(t *testing.T, m *stage.Mesh, index, replicas int) {
	t.Helper()
	patch := client.RawPatch(types.JSONPatchType,
		fmt.Appendf(nil, `[{"op":"add","path":"/spec/functions/%d/replicas","value":%d}]`, index, replicas))
	require.NoError(t, scene.Client.Patch(t.Context(), m.Object(), patch, client.FieldOwner("kubectl-edit")))
}

// deleteChild deletes a child, and returns a function that reports whether there is another one.
func deleteChild(t *testing.T, f *stage.Function) (recreated func(ctx context.Context) (bool, string, error)) {
	t.Helper()
	object := f.Object()
	key := client.ObjectKeyFromObject(object)
	require.NoError(t, scene.Client.Get(t.Context(), key, object))
	uid := object.GetUID()
	require.NoError(t, scene.Client.Delete(t.Context(), object))
	return func(ctx context.Context) (bool, string, error) {
		now := f.Object()
		switch err := scene.Client.Get(ctx, key, now); {
		case apierrors.IsNotFound(err):
			return false, "it is missing", nil
		default:
			return err == nil && now.GetUID() != uid, string(now.GetUID()), err
		}
	}
}

func TestMeshComponentAtZeroIsCreatedAnewAndHoldsUpNoSibling(t *testing.T) {
	t.Parallel()
	m, first, second := pairOf(t, "mesh-zero")
	addPolicy(t, meshTo(m, m.Functions[0], first, 0))
	addPolicy(t, meshTo(m, m.Functions[1], second, 1))
	entriesAre(t, m, 0, 1)
	scene.AwaitConditions(t, m.Functions[0].Name, "Ready=True/ScaledToZero")

	recreated := deleteChild(t, m.Functions[0])
	m.Functions[0].Await(t, "the child to be recreated", recreated)
	entriesAre(t, m, 0, 1)
	scene.AwaitConditions(t, m.Functions[0].Name, "Ready=True/ScaledToZero")

	publish(t, m.Functions[1], load.Constant(100))
	m.Functions[1].AwaitReplicas(t, 3, 20)
	scene.AwaitConditions(t, m.Functions[1].Name, "TargetFound=True/Found")
}
