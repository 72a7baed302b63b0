// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

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

// TestArtifactHubShowsTheScaler checks the package of kind "KEDA scaler" by the rules of Artifact Hub.
//
// Source: github.com/artifacthub/hub, internal/pkg/metadata.go.
func TestArtifactHubShowsTheScaler(t *testing.T) {
	var shown struct {
		Version, Name, Category, DisplayName, Description, License, HomeURL, AppVersion, Readme, Install string
		CreatedAt                                                                                        time.Time
		Prerelease                                                                                       bool
		ContainersImages                                                                                 []struct {
			Name, Image string
			Platforms   []string
		}
		Keywords []string
		Links    []struct{ Name, URL string }
		Provider struct{ Name string }
	}
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "deploy", "artifacthub", "artifacthub-pkg.yml"))
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, &shown))
	require.Regexp(t, `^\d+\.\d+\.\d+$`, shown.Version)
	require.Regexp(t, `^[a-z0-9-]+$`, shown.Name)
	require.Equal(t, "streaming-messaging", shown.Category)
	for _, needed := range []string{
		shown.DisplayName, shown.Description, shown.Readme, shown.Install, shown.Provider.Name,
	} {
		require.NotEmpty(t, needed)
	}
	require.Len(t, shown.ContainersImages, 1)
	require.NotEmpty(t, shown.Links)
	for _, link := range shown.Links {
		path, found := strings.CutPrefix(link.URL, shown.HomeURL+"/blob/main/")
		require.True(t, found, link.URL)
		require.FileExists(t, filepath.Join(root, filepath.FromSlash(path)))
	}

	schema, err := os.ReadFile(filepath.Join(root, "docs", "keda-trigger.schema.json"))
	require.NoError(t, err)
	var scaled struct {
		Spec struct {
			Triggers []struct{ Metadata map[string]string }
		}
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(shown.Readme)
	require.Len(t, example, 2)
	require.NoError(t, yaml.Unmarshal([]byte(example[1]), &scaled))
	require.Len(t, scaled.Spec.Triggers, 1)
	for key := range scaled.Spec.Triggers[0].Metadata {
		require.Contains(t, string(schema), `"`+key+`": {`)
	}
}
