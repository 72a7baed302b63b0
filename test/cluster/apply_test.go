// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// object makes an object of any kind; fields are its other top-level fields.
func object(apiVersion, kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range fields {
		o.Object[key] = value
	}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	o.SetNamespace(namespace)
	return o
}
