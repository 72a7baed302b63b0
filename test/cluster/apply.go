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

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
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
	c.mapper.Reset() // definitions may have changed in another way
	for _, object := range objects {
		kind, name := object.GroupVersionKind(), object.GetName()
		resource, err := c.resource(kind, object.GetNamespace())
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", kind.Kind, name, err)
		}
		object = object.DeepCopy()
		_, err = resource.Apply(ctx, name, object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", kind.Kind, name, err)
		}
		if kind.GroupKind() == (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
			if err := c.waitCRD(ctx, resource, name); err != nil {
				return err
			}
		}
	}
	return nil
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

// resource returns the client of a kind.
func (c *Cluster) resource(kind schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	resource := c.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return resource, nil
	}
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return resource.Namespace(namespace), nil
}

// waitCRD returns once the definition is established and in discovery, by which clients map kinds; discovery follows a
// little later.
func (c *Cluster) waitCRD(ctx context.Context, definitions dynamic.ResourceInterface, name string) error {
	return WaitFor(ctx, "CustomResourceDefinition "+name+" to be served", applyPoll,
		func(ctx context.Context) (bool, string, error) {
			definition, err := definitions.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, "", err
			}
			if condition(definition, "Established") != string(metav1.ConditionTrue) {
				return false, fmt.Sprintf("conditions %v", conditions(definition)), nil
			}
			return c.discovered(definition)
		})
}

// discovered reports whether discovery has all served versions of the definition's kind.
func (c *Cluster) discovered(definition *unstructured.Unstructured) (bool, string, error) {
	c.mapper.Reset()
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		if served, _ := fields["served"].(bool); !served {
			continue
		}
		name, _ := fields["name"].(string)
		if _, err := c.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind}, name); err != nil {
			return false, "", err
		}
	}
	return true, "", nil
}

// conditions are the conditions in an object's status.
func conditions(object *unstructured.Unstructured) []any {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return list
}

// condition is the status of one condition, "" if the object lacks it.
func condition(object *unstructured.Unstructured, name string) string {
	for _, entry := range conditions(object) {
		fields, _ := entry.(map[string]any)
		if fields["type"] == name {
			status, _ := fields["status"].(string)
			return status
		}
	}
	return ""
}
