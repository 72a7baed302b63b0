// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// fieldManager owns what Apply writes.
	fieldManager = "pulsar-autoscaler-test"
	applyPoll    = 100 * time.Millisecond
	// yamlBuffer is how much of a stream the decoder reads to find its format.
	yamlBuffer = 4 << 10
)

// Apply applies the objects one after another by server-side apply, and takes over fields of other managers. A
// namespaced object without a namespace goes to "default". Apply returns once CustomResourceDefinitions among the
// objects are served, so the same call may have objects of their kinds.
func (c *Cluster) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, object := range objects {
		kind, name := object.GroupVersionKind(), object.GetName()
		if err := c.apply(ctx, object.DeepCopy()); err != nil {
			return fmt.Errorf("applying %s %s: %w", kind.Kind, name, err)
		}
		if kind.GroupKind() == (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
			if err := c.waitCRD(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cluster) apply(ctx context.Context, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := c.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace && object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	return c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager),
		client.ForceOwnership)
}

// ApplyFiles applies all documents of the YAML or JSON files in order, as Apply does.
func (c *Cluster) ApplyFiles(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		objects, err := readObjects(path)
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		if err := c.Apply(ctx, objects...); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func readObjects(path string) (objects []*unstructured.Unstructured, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	decoder := yaml.NewYAMLOrJSONDecoder(file, yamlBuffer)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) == 0: // a document of comments only
		case object.IsList():
			err := object.EachListItem(func(item runtime.Object) error {
				objects = append(objects, item.(*unstructured.Unstructured))
				return nil
			})
			if err != nil {
				return nil, err
			}
		case object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "":
			return nil, fmt.Errorf("document %d needs apiVersion, kind and name", len(objects)+1)
		default:
			objects = append(objects, object)
		}
	}
}

// waitCRD returns once the definition is established and in the discovery of all groups, by which clients map kinds;
// that follows a little later.
func (c *Cluster) waitCRD(ctx context.Context, name string) error {
	return WaitFor(ctx, "CustomResourceDefinition "+name+" to be served", applyPoll,
		func(ctx context.Context) (bool, string, error) {
			var crd apiextensionsv1.CustomResourceDefinition
			if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, &crd); err != nil {
				return false, "", err
			}
			if !apihelpers.IsCRDConditionTrue(&crd, apiextensionsv1.Established) {
				return false, fmt.Sprintf("conditions %v", crd.Status.Conditions), nil
			}
			mapper, err := apiutil.NewDynamicRESTMapper(c.rest, c.check) // that of Client does not read all groups again
			for _, version := range crd.Spec.Versions {
				if err == nil && version.Served {
					_, err = mapper.RESTMapping(schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}, version.Name)
				}
			}
			return true, "", err
		})
}
