// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
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
func CRDs() (crds []*unstructured.Unstructured, err error) {
	err = eachCRD(func(_ string, text []byte) error {
		crd := &unstructured.Unstructured{}
		crds = append(crds, crd)
		return yaml.UnmarshalStrict(text, &crd.Object)
	})
	return crds, err
}

// WriteCRDs writes the definitions into the existing directory dir and returns their paths: the HPA controller must
// find the kinds when it starts, see cluster.Config.CRDs.
func WriteCRDs(dir string) (paths []string, err error) {
	err = eachCRD(func(name string, text []byte) error {
		paths = append(paths, filepath.Join(dir, name))
		return os.WriteFile(filepath.Join(dir, name), text, 0o600)
	})
	return paths, err
}

func eachCRD(use func(name string, text []byte) error) error {
	return fs.WalkDir(definitions, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := definitions.ReadFile(path)
		if err == nil {
			err = use(entry.Name(), text)
		}
		if err != nil {
			return fmt.Errorf("reading the definition %s: %w", path, err)
		}
		return nil
	})
}
