// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestArtifactHubShowsTheChart checks what Artifact Hub reads of a chart.
//
// Source: https://artifacthub.io/docs/topics/annotations/helm/
func TestArtifactHubShowsTheChart(t *testing.T) {
	var chart struct {
		Home, Description string
		Sources, Keywords []string
		Maintainers       []struct{ Name, URL string }
		Annotations       map[string]string
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "chart", "Chart.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &chart))
	require.NotEmpty(t, chart.Description)
	require.NotEmpty(t, chart.Maintainers)
	require.Contains(t, chart.Sources, chart.Home)
	annotation := func(name string, into any) {
		require.NoError(t, yaml.UnmarshalStrict([]byte(chart.Annotations["artifacthub.io/"+name]), into), name)
	}
	require.Equal(t, "streaming-messaging", chart.Annotations["artifacthub.io/category"])
	require.Equal(t, "Apache-2.0", chart.Annotations["artifacthub.io/license"])

	t.Run("links lead to files of the tree", func(t *testing.T) {
		var links []struct{ Name, URL string }
		annotation("links", &links)
		require.NotEmpty(t, links)
		for _, link := range links {
			path, found := strings.CutPrefix(link.URL, chart.Home+"/")
			require.True(t, found, link.URL)
			_, path, _ = strings.Cut(path, "/main/")
			_, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(path)))
			require.NoError(t, err)
		}
	})
	t.Run("its kinds are all that are installed", func(t *testing.T) {
		var shown []struct{ Kind, Version, Name, DisplayName, Description string }
		annotation("crds", &shown)
		files, err := filepath.Glob(filepath.Join("..", "..", "deploy", "crd", "*.yaml"))
		require.NoError(t, err)
		require.Len(t, shown, len(files))
		for i, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var crd apiextensionsv1.CustomResourceDefinition
			require.NoError(t, yaml.Unmarshal(text, &crd))
			require.Equal(t, crd.Name, shown[i].Name)
			require.Equal(t, crd.Spec.Names.Kind, shown[i].Kind)
			require.Equal(t, crd.Spec.Versions[0].Name, shown[i].Version)
		}
	})
	t.Run("its examples are those of the tree", func(t *testing.T) {
		var shown []map[string]any
		annotation("crdsExamples", &shown)
		require.Len(t, shown, 2)
		for i, name := range []string{"function", "autoscalingpolicyset"} {
			text, err := os.ReadFile(filepath.Join("..", "..", "examples", name+".yaml"))
			require.NoError(t, err)
			var example map[string]any
			require.NoError(t, yaml.Unmarshal(text, &example))
			require.Equal(t, example, shown[i])
		}
	})
}
