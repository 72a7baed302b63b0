// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// root is the folder of the repository.
var root = filepath.Join("..", "..")

// example is the part of a manifest that the tests here read.
type example struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		ScaleTargetRef    struct{ Kind string }
		PulsarFunctionRef struct{ Name string }
		Subscription      struct {
			Topics        []string
			TopicsPattern string
		}
		Strategies []struct{ Type string }
	}
}

// TestTheAPIServerTakesTheExamples applies each file as kubectl apply --server-side does. A file that is not applied
// here, because of its name or because another has the same object, fails the test.
func TestTheAPIServerTakesTheExamples(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(root, "examples"))
	require.NoError(t, err)
	shown, objects := map[string]bool{}, map[string]string{}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() {
			continue // bench and simulate have no objects of the API server
		}
		require.Equal(t, ".yaml", filepath.Ext(name), "examples/%s is not applied by this test", name)
		text, err := os.ReadFile(filepath.Join(root, "examples", name))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(text), "# "), "%s does not say why", name)
		require.NotContains(t, string(text), "\n---", "%s: one object a file", name)
		object := read(t, string(text))
		require.Empty(t, objects[object.Kind+"/"+object.Metadata.Name], "%s has the same object", name)
		objects[object.Kind+"/"+object.Metadata.Name] = name
		for _, part := range parts(object) {
			shown[part] = true
		}
		t.Run(name, func(t *testing.T) {
			require.NoError(t, apply(t, string(text), false))
			t.Cleanup(func() {
				require.NoError(t, raw(t).Delete().AbsPath(path(object)).Do(context.WithoutCancel(t.Context())).Error())
			})
		})
	}
	for _, part := range []string{
		"AutoscalingPolicySet", "Function", "Sink", "Source", "FunctionMesh", "StatefulSet", "Deployment",
		"pulsarFunctionRef", "topics", "topicsPattern",
		"Capacity", "BacklogPerReplica", "RatePerReplica", "Utilization", "two strategies",
	} {
		require.True(t, shown[part], "there is no example with %s", part)
	}
}

func TestAnExampleWithAnUnknownFieldIsRefused(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "examples", "function.yaml"))
	require.NoError(t, err)
	misspelt := strings.Replace(string(text), "maxReplicas", "maximumReplicas", 1)
	require.ErrorContains(t, apply(t, misspelt, true), ".spec.maximumReplicas: field not declared in schema")
}

// parts are the targets, inputs and strategies that an example shows.
func parts(object example) []string {
	all := []string{object.Kind, object.Spec.ScaleTargetRef.Kind}
	for name, shown := range map[string]bool{
		"pulsarFunctionRef": object.Spec.PulsarFunctionRef.Name != "",
		"topics":            len(object.Spec.Subscription.Topics) > 0,
		"topicsPattern":     object.Spec.Subscription.TopicsPattern != "",
		"two strategies":    len(object.Spec.Strategies) == 2,
	} {
		if shown {
			all = append(all, name)
		}
	}
	for _, strategy := range object.Spec.Strategies {
		all = append(all, strategy.Type)
	}
	return all
}

// TestTheAPIServerTakesThePoliciesOfTheDocs: whole objects, and the spec of a policy alone.
func TestTheAPIServerTakesThePoliciesOfTheDocs(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	taken := map[string]bool{}
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, policy := range policiesIn(string(text)) {
			require.NoError(t, apply(t, policy, true), "%s has\n%s", page, policy)
			taken[filepath.Base(page)] = true
		}
	}
	require.Equal(t, map[string]bool{"README.md": true, "gitops.md": true, "keda.md": true, "targets.md": true}, taken,
		"pages with policies")
}

// policiesIn are the manifests of policies and sets in the YAML blocks of a page.
func policiesIn(page string) []string {
	const head = "apiVersion: pulsar-autoscaler.io/v1alpha1\nkind: AutoscalingPolicy\n" +
		"metadata: {name: shown, namespace: media}\n"
	var found []string
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page, -1) {
		for _, document := range regexp.MustCompile("(?m)^---$").Split(block[1], -1) {
			switch {
			case strings.Contains(document, "kind: AutoscalingPolicy"):
				found = append(found, document)
			case strings.HasPrefix(document, "spec:") && strings.Contains(document, "maxReplicas:"):
				found = append(found, head+document)
			}
		}
	}
	return found
}

func read(t *testing.T, text string) example {
	t.Helper()
	var object example
	require.NoError(t, yaml.Unmarshal([]byte(text), &object))
	return object
}

// apply sends a manifest as it is written, with strict validation of its fields.
func apply(t *testing.T, text string, dryRun bool) error {
	t.Helper()
	object := read(t, text)
	createNamespace(t, object.Metadata.Namespace)
	request := raw(t).Patch(types.ApplyYAMLPatchType).AbsPath(path(object)).
		Param("fieldManager", "people").Param("fieldValidation", "Strict").Body([]byte(text))
	if dryRun {
		request.Param("dryRun", "All")
	}
	return request.Do(t.Context()).Error()
}

// path is the URL of an object.
func path(object example) string {
	resource := strings.ToLower(object.Kind) + "s"
	if object.Kind == v1alpha1.KindAutoscalingPolicy {
		resource = v1alpha1.ResourceAutoscalingPolicies
	}
	return "/apis/pulsar-autoscaler.io/v1alpha1/namespaces/" + object.Metadata.Namespace + "/" + resource + "/" +
		object.Metadata.Name
}

// createNamespace creates a namespace that stays until the control plane stops.
func createNamespace(t *testing.T, name string) {
	t.Helper()
	err := raw(t).Post().AbsPath("/api/v1/namespaces").Body([]byte(`{"metadata": {"name": "` + name + `"}}`)).
		Do(t.Context()).Error()
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}
