// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/helm"
)

var update = flag.Bool("update", false, "write what is rendered of the chart instead of comparing it")

const ofValues = "kustomize-values.yaml"

// handwritten are the manifests that the chart does not have.
func handwritten() []string { return []string{ofAPIServices, "external/apiservice.yaml"} }

// TestTheManifestsAreRenderedFromTheChart but the CRDs, which controller-gen writes and the chart takes.
func TestTheManifestsAreRenderedFromTheChart(t *testing.T) {
	values := "--values=" + filepath.Join("..", "..", "deploy", ofValues)
	rendered := template(t, values)
	const withKEDA = "--api-versions=keda.sh/v1alpha1/ClusterTriggerAuthentication"
	for name, text := range template(t, values, "--set=scaler.enabled=true", withKEDA) {
		if isScalers(name) || name == ofKEDA {
			rendered[name] = text
		}
	}
	if *update {
		for name, text := range rendered {
			path := filepath.Join("..", "..", "deploy", filepath.FromSlash(name))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
		return
	}
	names := slices.DeleteFunc(files(t), func(name string) bool {
		return strings.HasPrefix(name, "crd/") || slices.Contains(handwritten(), name)
	})
	require.ElementsMatch(t, names, slices.Collect(maps.Keys(rendered)))
	for name, text := range rendered {
		content, err := fs.ReadFile(manifests(), name)
		require.NoError(t, err)
		require.Equal(t, text, string(content), "run make manifests for %s", name)
	}
}

// TestTheKustomizationHasWhatTheChartInstalls by default.
func TestTheKustomizationHasWhatTheChartInstalls(t *testing.T) {
	installed := slices.Collect(maps.Keys(template(t, "--set=namespace.create=true", "--set=image.tag=VERSION")))
	adapters := slices.DeleteFunc(listed(t, ""), func(name string) bool { return strings.HasPrefix(name, "crd/") })
	require.ElementsMatch(t, installed, adapters)
}

// template returns the rendered files by their paths below deploy, but the CRDs.
func template(t *testing.T, args ...string) map[string]string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs helm, which takes minutes to build")
	}
	out, err := helm.Template(t.Context(), args...)
	require.NoError(t, err)
	const header = "# Rendered from deploy/chart by make manifests: change it there.\n"
	rendered := map[string]string{}
	for _, document := range strings.Split(string(out), "---\n# Source: pulsar-autoscaler/templates/")[1:] {
		name, text, found := strings.Cut(document, "\n")
		require.True(t, found)
		if name == "crd/crds.yaml" {
			continue
		}
		separator := "---\n"
		if rendered[name] == "" {
			separator = header
		}
		rendered[name] += separator + strings.Trim(text, "\n") + "\n"
	}
	require.NotEmpty(t, rendered)
	return rendered
}
