// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/helm"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"
)

// namespace is that of the release.
const namespace = "pulsar-autoscaler"

var controlPlane = shared.New("a real control plane", startControlPlane, func(c *cluster.Cluster) error {
	c.Stop()
	return nil
})

// programs is a directory with the adapter and the scaler.
var programs = shared.New("the programs of the chart", buildPrograms, os.RemoveAll)

func TestMain(m *testing.M) { shared.Main(m, controlPlane, programs) }

func buildPrograms(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "pulsar-autoscaler-chart-")
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator),
		"../../cmd/adapter", "../../cmd/scaler").CombinedOutput()
	if err != nil {
		return "", errors.Join(fmt.Errorf("building the programs: %w\n%s", err, out), os.RemoveAll(dir))
	}
	return dir, nil
}

func startControlPlane(ctx context.Context) (*cluster.Cluster, error) {
	crds, err := filepath.Glob(filepath.Join("..", "..", "deploy", "crd", "*.yaml"))
	if err != nil {
		return nil, err
	}
	others, err := definitions(ctx)
	if err != nil {
		return nil, err
	}
	meshes, err := filepath.Glob(filepath.Join("..", "mesh", "crd", "*.yaml"))
	if err != nil {
		return nil, err
	}
	return cluster.Start(ctx, cluster.Config{CRDs: slices.Concat(crds, others, meshes), Progress: os.Stderr})
}

// apiVersions have Helm render for a cluster with the kinds of other projects.
func apiVersions() (args []string) {
	for _, kind := range operatorKinds() {
		args = append(args, "--api-versions="+kind)
	}
	return args
}

// valueFiles are those of deploy/chart/ci, by name.
func valueFiles(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "deploy", "chart", "ci", "*-values.yaml"))
	require.NoError(t, err)
	files := map[string]string{}
	for _, path := range paths {
		files[strings.TrimSuffix(filepath.Base(path), "-values.yaml")] = path
	}
	require.Len(t, files, 7)
	return files
}

// render returns the objects of the chart for a file of values.
func render(t *testing.T, values string) []*unstructured.Unstructured {
	t.Helper()
	return renderWith(t, "--values="+values)
}

// renderWith returns the objects of the chart for flags of helm.
func renderWith(t *testing.T, flags ...string) []*unstructured.Unstructured {
	t.Helper()
	if testing.Short() {
		t.Skip("needs helm, which takes minutes to build")
	}
	out, err := helm.Template(t.Context(), append(apiVersions(), flags...)...)
	require.NoError(t, err)
	return decode(t, out)
}

// decode returns the objects of a file of manifests.
func decode(t *testing.T, manifests []byte) []*unstructured.Unstructured {
	t.Helper()
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifests)))
	var objects []*unstructured.Unstructured
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		object := &unstructured.Unstructured{}
		require.NoError(t, sigsyaml.Unmarshal(document, &object.Object), string(document))
		if object.GetKind() != "" {
			objects = append(objects, object)
		}
	}
}

// ofKind are the objects of a kind.
func ofKind(objects []*unstructured.Unstructured, kinds ...string) (found []*unstructured.Unstructured) {
	for _, object := range objects {
		for _, kind := range kinds {
			if object.GetKind() == kind {
				found = append(found, object)
			}
		}
	}
	return found
}
