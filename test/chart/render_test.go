// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/helm"
)

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted",
	}}}
}

// administrator returns a client with all permissions on the control plane.
func administrator(t *testing.T) client.Client {
	t.Helper()
	return controlPlane.Need(t).Client
}

// TestTheAPIServerTakesEveryObject validates strictly, other projects' objects by their definitions, and the pods in a
// namespace that enforces Pod Security "restricted". The programs take their flags.
func TestTheAPIServerTakesEveryObject(t *testing.T) {
	if testing.Short() {
		t.Skip("needs helm and a real control plane")
	}
	people := administrator(t)
	for _, name := range []string{namespace, "media", "billing", "scaling"} {
		require.NoError(t, client.IgnoreAlreadyExists(people.Create(t.Context(), namespaceOf(name))))
	}
	for name, values := range valueFiles(t) {
		t.Run(name, func(t *testing.T) {
			objects := render(t, values)
			requireFlagsTaken(t, objects)
			for _, deployment := range ofKind(objects, "Deployment") {
				requireRestricted(t, people, deployment)
			}
			for _, object := range objects {
				require.NoError(t, apply(t, people, object), "%s %s", object.GetKind(), object.GetName())
			}
		})
	}
}

// requireRestricted has the API server validate a pod of the Deployment.
func requireRestricted(t *testing.T, people client.Client, deployment *unstructured.Unstructured) {
	t.Helper()
	template, found, err := unstructured.NestedMap(deployment.Object, "spec", "template")
	require.NoError(t, err)
	require.True(t, found)
	pod := &unstructured.Unstructured{Object: template}
	pod.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	pod.SetName(deployment.GetName())
	pod.SetNamespace(namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: deployment.GetName(), Namespace: namespace}}
	require.NoError(t, client.IgnoreAlreadyExists(people.Create(t.Context(), account)))
	require.NoError(t, people.Create(t.Context(), pod, client.DryRunAll))
	require.NoError(t, unstructured.SetNestedField(pod.Object, false, "spec", "securityContext", "runAsNonRoot"))
	require.ErrorContains(t, people.Create(t.Context(), pod, client.DryRunAll), "violates PodSecurity")
}

// requireFlagsTaken runs the program of each Deployment with its flags. Outside of a cluster they fail, but only after
// they have validated all flags.
func requireFlagsTaken(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	dir := programs.Need(t)
	for _, deployment := range ofKind(objects, "Deployment") {
		containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
		require.NoError(t, err)
		var container corev1.Container
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(
			containers[0].(map[string]any), &container)) //nolint:forcetypeassert // the API server takes it
		command := exec.CommandContext(t.Context(), filepath.Join(dir, deployment.GetName()), container.Args...)
		command.Env = []string{"HOME=" + dir}
		out, err := command.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "set --lease-namespace outside of a cluster")
	}
}

func TestLabelsOfSelectorsAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("needs helm, which takes minutes to build")
	}
	for _, labels := range []string{"commonLabels", "adapter.podLabels", "scaler.podLabels"} {
		_, err := helm.Template(t.Context(), "--values=../../deploy/chart/ci/minimal-values.yaml",
			"--set="+labels+`.app\.kubernetes\.io/component=another`)
		require.ErrorContains(t, err, "invalid propertyName 'app.kubernetes.io/component'", labels)
	}
}

// TestHelmUnittest runs the tests in deploy/chart/tests.
func TestHelmUnittest(t *testing.T) {
	if testing.Short() {
		t.Skip("needs helm-unittest, which takes minutes to build")
	}
	tool, err := helm.Tool(t.Context(), "helm-unittest")
	require.NoError(t, err)
	chart, err := helm.Chart()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), tool, "--strict", chart)
	command.Env = append(os.Environ(), "HELM_DEBUG=false")
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
}
