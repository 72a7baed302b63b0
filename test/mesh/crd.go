// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"embed"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Group and Version are Function Mesh's.
const (
	Group   = "compute.functionmesh.io"
	Version = "v1alpha1"
)

// Kinds with replicas, and the kind that consists of them.
const (
	KindFunction = "Function"
	KindSink     = "Sink"
	KindSource   = "Source"
	KindMesh     = "FunctionMesh"
)

//go:embed crd
var definitions embed.FS

// GroupVersion is compute.functionmesh.io/v1alpha1.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// CRDs are the CustomResourceDefinitions of functions, sinks, sources and functionmeshes.
func CRDs() ([]*unstructured.Unstructured, error) {
	names, err := definitions.ReadDir("crd")
	if err != nil {
		return nil, fmt.Errorf("listing the definitions: %w", err)
	}
	crds := make([]*unstructured.Unstructured, 0, len(names))
	for _, name := range names {
		text, err := definitions.ReadFile(path.Join("crd", name.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the definition: %w", err)
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(text, &crd.Object); err != nil {
			return nil, fmt.Errorf("reading the definition %s: %w", name.Name(), err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// WriteCRDs writes the definitions into the existing directory dir and returns their paths: the HPA controller must
// find the kinds when it starts, see cluster.Config.CRDs.
func WriteCRDs(dir string) (paths []string, err error) {
	names, err := definitions.ReadDir("crd")
	if err != nil {
		return nil, fmt.Errorf("listing the definitions: %w", err)
	}
	for _, name := range names {
		text, err := definitions.ReadFile(path.Join("crd", name.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the definition: %w", err)
		}
		file := filepath.Join(dir, name.Name())
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return nil, fmt.Errorf("writing the definition: %w", err)
		}
		paths = append(paths, file)
	}
	return paths, nil
}
