// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// meshChange is one update of a FunctionMesh with Functions tag and resize, and Sink store without replicas.
type meshChange struct {
	change func(mesh *unstructured.Unstructured)
	denied string // nothing is yes
	// takeOver is true if rbac.takeOver allows it.
	takeOver bool
}

func meshChanges() map[string]meshChange {
	const ofSpec, ofMetadata = "and nothing else of its spec", "may not change the metadata"
	first := func(list string, change func(entry fields)) func(*unstructured.Unstructured) {
		return func(mesh *unstructured.Unstructured) {
			entries, _ := fixture.Spec(mesh)[list].([]any)
			entry, _ := entries[0].(fields)
			change(entry)
		}
	}
	return map[string]meshChange{
		"replicas of a Function": {change: first("functions", func(entry fields) { entry["replicas"] = int64(7) })},
		"replicas of a Sink that has none": {
			change: first("sinks", func(entry fields) { entry["replicas"] = int64(7) }),
		},
		"no replicas any more": {change: first("functions", func(entry fields) { delete(entry, "replicas") })},
		"nothing":              {change: func(*unstructured.Unstructured) {}},
		"maxReplicas": {
			change:   first("functions", func(entry fields) { entry["maxReplicas"] = int64(7) }),
			denied:   ofSpec,
			takeOver: true,
		},
		"an image": {
			change: first("functions", func(entry fields) { entry["image"] = "example.org/other" }), denied: ofSpec,
		},
		"an image, beside replicas": {
			change: first("functions", func(entry fields) { entry["replicas"], entry["image"] = int64(7), "example.org/other" }),
			denied: ofSpec,
		},
		"replicas below the first level": {
			change: first("functions", func(entry fields) { entry["pod"] = fields{"replicas": int64(7)} }), denied: ofSpec,
		},
		"another name": {change: first("sinks", func(entry fields) { entry["name"] = "other" }), denied: ofSpec},
		"the order": {change: func(mesh *unstructured.Unstructured) {
			entries := fixture.Entries(mesh)
			entries[0], entries[1] = entries[1], entries[0]
		}, denied: ofSpec},
		"one entry more": {change: func(mesh *unstructured.Unstructured) {
			fixture.Spec(mesh)["functions"] = append(fixture.Entries(mesh), fixture.Entry("more"))
		}, denied: ofSpec},
		"one entry less": {change: func(mesh *unstructured.Unstructured) {
			fixture.Spec(mesh)["functions"] = fixture.Entries(mesh)[:1]
		}, denied: ofSpec},
		"a list more": {change: func(mesh *unstructured.Unstructured) {
			fixture.Spec(mesh)["sources"] = []any{fixture.Entry("load")}
		}, denied: ofSpec},
		"another field of the spec": {change: func(mesh *unstructured.Unstructured) {
			fixture.Spec(mesh)["replicas"] = int64(7)
		}, denied: ofSpec},
		"a label": {change: func(mesh *unstructured.Unstructured) {
			mesh.SetLabels(map[string]string{"team": "other"})
		}, denied: ofMetadata},
		"an annotation": {change: func(mesh *unstructured.Unstructured) {
			mesh.SetAnnotations(map[string]string{"compute.functionmesh.io/managed": "false"})
		}, denied: ofMetadata},
		"a finalizer": {change: func(mesh *unstructured.Unstructured) {
			mesh.SetFinalizers([]string{"example.org/other"})
		}, denied: ofMetadata},
	}
}

func TestTheAdapterMayChangeReplicasOfAMeshAndNothingElse(t *testing.T) {
	if testing.Short() {
		t.Skip("needs helm and a real control plane")
	}
	people := administrator(t)
	require.NoError(t, client.IgnoreAlreadyExists(people.Create(t.Context(), namespaceOf(fixture.Namespace))))
	mesh := fixture.Mesh()
	store := fixture.Entry("store")
	delete(store, "replicas")
	fixture.Spec(mesh)["sinks"] = []any{store}
	mesh.SetLabels(map[string]string{"team": "media"})
	require.NoError(t, people.Create(t.Context(), mesh))
	t.Cleanup(func() { require.NoError(t, people.Delete(context.WithoutCancel(t.Context()), mesh)) })
	adapter := as(t, "system:serviceaccount:"+namespace+":adapter", "system:serviceaccounts")
	for name, takeOver := range map[string]bool{"by default": false, "with rbac.takeOver": true} {
		t.Run(name, func(t *testing.T) {
			flags := []string{"--set=image.tag=VERSION", "--set=rbac.functionMeshes=true"}
			if takeOver {
				flags = append(flags, "--set=rbac.takeOver=true")
			}
			enforceMeshPolicy(t, people, adapter, mesh, flags)
			for name, test := range meshChanges() {
				t.Run(name, func(t *testing.T) {
					changed := mesh.DeepCopy()
					test.change(changed)
					require.NoError(t, people.Update(t.Context(), changed.DeepCopy(), client.DryRunAll), "a user may")
					err := adapter.Update(t.Context(), changed, client.DryRunAll)
					if test.denied == "" || takeOver && test.takeOver {
						require.NoError(t, err)
						return
					}
					require.ErrorContains(t, err, test.denied)
				})
			}
			t.Run("the patch of the adapter", func(t *testing.T) {
				patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"test","path":"/spec/functions/1/name",`+
					`"value":"resize"},{"op":"add","path":"/spec/functions/1/replicas","value":9}]`))
				require.NoError(t, adapter.Patch(t.Context(), mesh.DeepCopy(), patch, client.DryRunAll,
					client.FieldOwner("pulsar-autoscaler")))
			})
		})
	}
}

// enforceMeshPolicy creates the admission policy of the chart until the test ends. It waits until the API server
// enforces it, and in the end until that no longer does.
func enforceMeshPolicy(t *testing.T, people, adapter client.Client, mesh *unstructured.Unstructured, flags []string) {
	t.Helper()
	relabeled := mesh.DeepCopy()
	relabeled.SetLabels(nil)
	await := func(what string, denied bool) {
		ctx := context.WithoutCancel(t.Context())
		require.NoError(t, cluster.WaitFor(ctx, what, 100*time.Millisecond, func(ctx context.Context) (bool, string, error) {
			err := adapter.Update(ctx, relabeled.DeepCopy(), client.DryRunAll)
			return (err != nil) == denied, fmt.Sprint(err), nil
		}))
	}
	t.Cleanup(func() { await("the admission policy to be gone", false) }) // after the deletions
	for _, object := range ofKind(renderWith(t, flags...), "ValidatingAdmissionPolicy",
		"ValidatingAdmissionPolicyBinding") {
		require.NoError(t, people.Create(t.Context(), object))
		t.Cleanup(func() { require.NoError(t, people.Delete(context.WithoutCancel(t.Context()), object)) })
	}
	await("the admission policy to be enforced", true)
}
