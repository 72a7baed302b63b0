// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// kubectlApply sends what kubectl apply -f sends for a custom resource: a three-way JSON merge patch of the last
// applied manifest, this one and the live object, which replaces lists as a whole; and nothing where that is empty.
func kubectlApply(t *testing.T, manifest *unstructured.Unstructured) {
	t.Helper()
	plain := manifest.DeepCopy()
	plain.SetAnnotations(map[string]string{})
	lastApplied, err := json.Marshal(plain.Object)
	require.NoError(t, err)
	modified := manifest.DeepCopy()
	modified.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(lastApplied) + "\n"})
	manager := client.FieldOwner("kubectl-client-side-apply")
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(manifest.GroupVersionKind())
	err = scene.Client.Get(t.Context(), client.ObjectKeyFromObject(manifest), live)
	if apierrors.IsNotFound(err) {
		require.NoError(t, scene.Client.Create(t.Context(), modified, manager))
		return
	}
	require.NoError(t, err)
	original := live.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
	wanted, err := json.Marshal(modified.Object)
	require.NoError(t, err)
	current, err := json.Marshal(live.Object)
	require.NoError(t, err)
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(original), wanted, current)
	require.NoError(t, err)
	if string(patch) == "{}" {
		return
	}
	require.NoError(t, scene.Client.Patch(t.Context(), live, client.RawPatch(types.MergePatchType, patch), manager))
}

// serverSideApply sends what kubectl apply --server-side sends.
func serverSideApply(t *testing.T, manifest *unstructured.Unstructured, manager string, force bool) error {
	t.Helper()
	options := []client.ApplyOption{client.FieldOwner(manager)}
	if force {
		options = append(options, client.ForceOwnership)
	}
	return scene.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(manifest.DeepCopy()), options...)
}

// manifestOf returns the object as its user wrote it.
func manifestOf(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	live := object.DeepCopy()
	require.NoError(t, scene.Client.Get(t.Context(), client.ObjectKeyFromObject(object), live))
	manifest := object.DeepCopy()
	manifest.Object["spec"] = live.Object["spec"]
	return manifest
}

// withoutReplicas returns the manifest of a mesh without replicas in its entries.
func withoutReplicas(t *testing.T, manifest *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	manifest = manifest.DeepCopy()
	entries, _, err := unstructured.NestedSlice(manifest.Object, "spec", "functions")
	require.NoError(t, err)
	for _, entry := range entries {
		delete(entry.(map[string]any), "replicas")
	}
	require.NoError(t, unstructured.SetNestedSlice(manifest.Object, entries, "spec", "functions"))
	return manifest
}

func TestGitOpsAnUnchangedApplyOfAMeshIsUndoneAtOnce(t *testing.T) {
	t.Parallel()
	m, first, second := pairOf(t, "gitops-mesh")
	manifest := manifestOf(t, m.Object())
	kubectlApply(t, manifest)
	held := meshTo(m, m.Functions[0], first, 1)
	held.Spec.Behavior.ScaleDown.StabilizationWindowSeconds = new(int32(600))
	addPolicy(t, held)
	addPolicy(t, meshTo(m, m.Functions[1], second, 3))
	entriesAre(t, m, 1, 3)
	setEntry(t, m, 0, 4) // which the load does not need: it is decided because it was set by hand
	scene.AwaitPolicy(t, held.Name, "4 to be decided", func(p *v1alpha1.AutoscalingPolicy) bool {
		d := p.Status.DesiredReplicas
		return d != nil && *d == 4
	})
	entriesAre(t, m, 4, 3)
	m.Functions[0].AwaitReplicas(t, 4, 4)
	m.Functions[1].AwaitReplicas(t, 3, 3)
	publish(t, m.Functions[0], load.Constant(20))

	kubectlApply(t, manifest)
	entriesAre(t, m, 4, 3)
	for _, f := range m.Functions {
		awaitEvent(t, f.Name, "ReplicasChangedExternally", "-> 1 "+writtenBy)
		f.AwaitReplicas(t, 3, 4)
	}

	// One that follows within a minute is a fight, unless the controller may not have seen its own write yet. What happens
	// in its pause is tested without a clock, see reset_test.go of controllers.
	require.ErrorContains(t, serverSideApply(t, manifest, "kubectl", false), `conflict with "pulsar-autoscaler"`)
	decided := []int64{4, 3}
	scene.Await(t, "the fight to be told", func(ctx context.Context) (bool, string, error) {
		entries, err := replicasOfEntries(ctx, m)
		if err != nil {
			return false, "", err
		}
		told, again := 0, false
		for i, f := range m.Functions {
			found, _, err := hasEvent(ctx, f.Name, "ReplicasReset",
				"was reset within a minute after the controller had written it back, by ")
			switch {
			case err != nil:
				return false, "", err
			case found:
				told++
			case entries[i] == decided[i]:
				again = true
			}
		}
		if again {
			return false, fmt.Sprint(entries), serverSideApply(t, manifest, "kubectl", true)
		}
		return told == len(m.Functions), fmt.Sprint(entries), nil
	}, m.Functions[0].Name, m.Functions[1].Name)
	scene.AwaitConditions(t, m.Functions[1].Name, "Ready=True/Scaling")
	m.Functions[1].AwaitReplicas(t, 3, 3) // its minReplicas, after the pause
}

func TestGitOpsAMeshWithoutReplicasIsScaled(t *testing.T) {
	t.Parallel()
	m, first, _ := pairOf(t, "gitops-none")
	manifest := withoutReplicas(t, manifestOf(t, m.Object()))
	kubectlApply(t, manifest)
	requireEntries(t, m, -1, -1)
	addPolicy(t, meshTo(m, m.Functions[0], first, 3))
	m.Functions[0].AwaitReplicas(t, 3, 3)
	kubectlApply(t, manifest)
	entriesAre(t, m, 3, -1)
	m.Functions[0].AwaitReplicas(t, 3, 3)
	m.Functions[1].AwaitReplicas(t, 1, 1)
	scene.AwaitConditions(t, m.Functions[0].Name, "Ready=True/Scaling")
}

func TestGitOpsAFunctionWithoutReplicasInItsManifestKeepsThem(t *testing.T) {
	t.Parallel()
	const name = "gitops-plain"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 25 * time.Millisecond})
	manifest := manifestOf(t, f.Object())
	unstructured.RemoveNestedField(manifest.Object, "spec", "replicas")
	kubectlApply(t, manifest)
	p := newPolicy(name)
	p.Spec.MinReplicas = new(int32(3))
	addPolicy(t, p)
	f.AwaitReplicas(t, 3, 3)
	publish(t, f, load.Constant(20))
	since := time.Now()
	kubectlApply(t, manifest)
	require.NoError(t, serverSideApply(t, manifest, "kustomize-controller", true))
	require.NoError(t, serverSideApply(t, manifest, "kustomize-controller", true))
	f.AwaitDone(t, 100)
	require.Subset(t, []int{3}, scene.Mesh.Desired(stage.Namespace, name, since)[1:], "no replica moves")
}

func TestGitOpsTheManifestsOfThePageAreTaken(t *testing.T) {
	t.Parallel()
	onStage(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "gitops.md"))
	require.NoError(t, err)
	taken := map[string]bool{}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(apiVersion: .*?)```").FindAllStringSubmatch(string(page), -1) {
		for _, document := range strings.Split(block[1], "\n---\n") {
			object := &unstructured.Unstructured{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), &object.Object))
			object.SetNamespace(stage.Namespace)
			object.SetName("page-" + object.GetName()) // other tests have an etl of their own
			require.NoError(t, scene.Client.Create(t.Context(), object, client.DryRunAll,
				client.FieldValidation(metav1.FieldValidationStrict)), document)
			taken[object.GetKind()] = true
		}
	}
	require.Equal(t, map[string]bool{"AutoscalingPolicy": true, "Function": true, "FunctionMesh": true}, taken)
}
