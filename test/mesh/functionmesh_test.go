// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// meshed returns a Function for an entry.
func meshed(name string, replicas int32) *unstructured.Unstructured {
	return Function("default", name, FunctionConfig{Topics: []string{"in"}, PulsarConfig: settings, Replicas: replicas})
}

func (b *bed) meshes() dynamic.ResourceInterface {
	return b.dynamic.Resource(GroupVersion().WithResource("functionmeshes")).Namespace("default")
}

func (b *bed) patchMesh(t *testing.T, kind types.PatchType, patch string) {
	t.Helper()
	_, err := b.meshes().Patch(t.Context(), "m", kind, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
}

// childRuns waits until the child exists with n replicas, and their ordinals run. Runner and history use different
// names for it.
func (b *bed) childRuns(t *testing.T, entry string, n int) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		child, err := b.functions().Get(t.Context(), "m-"+entry, metav1.GetOptions{})
		require.NoError(c, err)
		replicas, _, err := unstructured.NestedInt64(child.Object, "spec", "replicas")
		require.NoError(c, err)
		require.EqualValues(c, n, replicas)
		require.Equal(c, n, b.operator.Running("default", "m-"+entry))
		require.Len(c, b.runner.alive(entry), n)
	}, patience, often)
}

// written waits for the first n values of spec.replicas since the Function was read. The API tells each of them; the
// operator sees only the last when it is late.
func (b *bed) written(t *testing.T, read *unstructured.Unstructured, n int) (values []int64) {
	t.Helper()
	limited, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	events, err := b.functions().Watch(limited, metav1.ListOptions{
		FieldSelector: "metadata.name=" + read.GetName(), ResourceVersion: read.GetResourceVersion(),
	})
	require.NoError(t, err)
	defer events.Stop()
	for live := read; ; {
		replicas, _, err := unstructured.NestedInt64(live.Object, "spec", "replicas")
		require.NoError(t, err)
		if values = slices.Compact(append(values, replicas)); len(values) == n {
			return values
		}
		event := <-events.ResultChan() // the zero one at its end
		changed, is := event.Object.(*unstructured.Unstructured)
		require.True(t, is, "%v after %v", event, values)
		live = changed
	}
}

func meshes(t *testing.T, b *bed) {
	m := Mesh("default", "m", meshed("one", 2), meshed("two", 1))
	entries, _, err := unstructured.NestedSlice(m.Object, "spec", "functions")
	require.NoError(t, err)
	delete(entries[1].(map[string]any), "replicas")
	require.NoError(t, unstructured.SetNestedSlice(m.Object, entries, "spec", "functions"))
	_, err = b.meshes().Create(t.Context(), m, metav1.CreateOptions{})
	require.NoError(t, err)
	b.childRuns(t, "one", 2)
	b.childRuns(t, "two", 1) // an entry without replicas has one
	child, err := b.functions().Get(t.Context(), "m-one", metav1.GetOptions{})
	require.NoError(t, err)
	owner := metav1.GetControllerOf(child)
	require.Equal(t, "FunctionMesh m", owner.Kind+" "+owner.Name)

	// A scaled child is reset, late enough for pods to start and end.
	before := b.operator.MeshPasses("default", "m")
	b.scale(t, "m-one", 5)
	require.Equal(t, []int64{2, 5, 2}, b.written(t, child, 3))
	b.childRuns(t, "one", 2)
	require.Greater(t, b.operator.MeshPasses("default", "m"), before)

	// The entry determines the replicas.
	b.patchMesh(t, types.JSONPatchType,
		`[{"op":"test","path":"/spec/functions/0/name","value":"one"},{"op":"add","path":"/spec/functions/0/replicas","value":3}]`)
	b.childRuns(t, "one", 3)
	_, err = b.meshes().Patch(t.Context(), "m", types.JSONPatchType,
		[]byte(`[{"op":"test","path":"/spec/functions/1/name","value":"one"},{"op":"add","path":"/spec/functions/1/replicas","value":3}]`), metav1.PatchOptions{})
	require.True(t, apierrors.IsInvalid(err), "a test that fails: %v", err)

	// An unmanaged mesh does not write to its children until it is managed again.
	b.patchMesh(t, types.MergePatchType, fmt.Sprintf(`{"metadata":{"annotations":{%q:"false"}}}`, annotationManaged))
	b.scale(t, "m-one", 1)
	b.childRuns(t, "one", 1)
	b.patchMesh(t, types.MergePatchType, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, annotationManaged))
	b.childRuns(t, "one", 3)

	// A child without an entry is deleted.
	b.patchMesh(t, types.JSONPatchType, `[{"op":"remove","path":"/spec/functions/1"}]`)
	b.gone(t, "m-two")
	require.NoError(t, b.meshes().Delete(t.Context(), "m", metav1.DeleteOptions{}))
	b.gone(t, "m-one")
	require.Eventually(t, func() bool { return len(b.runner.alive("one")) == 0 }, patience, often)
}

func (b *bed) gone(t *testing.T, function string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := b.functions().Get(t.Context(), function, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, patience, often)
}

func refusesNone(t *testing.T, b *bed) {
	for kind, resource := range map[string]dynamic.ResourceInterface{
		KindFunction: b.functions(), KindSink: b.sinks(),
		KindSource: b.dynamic.Resource(GroupVersion().WithResource("sources")).Namespace("default"),
	} {
		none := meshed("none", 0)
		none.SetKind(kind)
		_, err := resource.Create(t.Context(), none, metav1.CreateOptions{})
		require.True(t, apierrors.IsInvalid(err), "%s: %v", kind, err)
		require.ErrorContains(t, err, "minReplicas must be less than or equal to replicas")
	}
	b.create(t, "emptied", 1, 0)
	b.scale(t, "emptied", 0)
	b.running(t, "emptied", 0)
	relabel := []byte(`{"spec":{"image":"another"}}`)
	_, err := b.functions().Patch(t.Context(), "emptied", types.MergePatchType, relabel, metav1.PatchOptions{})
	require.NoError(t, err, "an existing one may be set to 0")
}

func stopsAtAChild(t *testing.T, b *bed) {
	m := Mesh("default", "m", meshed("first", 1), meshed("none", 0), meshed("last", 1))
	_, err := b.meshes().Create(t.Context(), m, metav1.CreateOptions{})
	require.NoError(t, err)
	b.childRuns(t, "first", 1)
	before := b.operator.MeshPasses("default", "m")
	require.Eventually(t, func() bool { return b.operator.MeshPasses("default", "m") > before+2 }, patience, often,
		"it is retried")
	for _, missing := range []string{"m-none", "m-last"} {
		_, err := b.functions().Get(t.Context(), missing, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%s: %v", missing, err)
	}

	b.patchMesh(t, types.JSONPatchType, `[{"op":"replace","path":"/spec/functions/1/replicas","value":1}]`)
	b.childRuns(t, "none", 1)
	b.childRuns(t, "last", 1)
	b.patchMesh(t, types.JSONPatchType, `[{"op":"replace","path":"/spec/functions/1/replicas","value":0}]`)
	b.childRuns(t, "none", 0)

	// The child at 0 cannot be recreated, and the one after it is no longer scaled.
	require.NoError(t, b.functions().Delete(t.Context(), "m-none", metav1.DeleteOptions{}))
	b.gone(t, "m-none")
	b.patchMesh(t, types.JSONPatchType, `[{"op":"replace","path":"/spec/functions/2/replicas","value":2}]`)
	before = b.operator.MeshPasses("default", "m")
	require.Eventually(t, func() bool { return b.operator.MeshPasses("default", "m") > before+1 }, patience, often)
	b.childRuns(t, "last", 1)
	b.patchMesh(t, types.JSONPatchType, `[{"op":"replace","path":"/spec/functions/1/replicas","value":1}]`)
	b.childRuns(t, "last", 2)
	require.NoError(t, b.meshes().Delete(t.Context(), "m", metav1.DeleteOptions{}))
	for _, child := range []string{"m-first", "m-none", "m-last"} {
		b.gone(t, child)
	}
}
