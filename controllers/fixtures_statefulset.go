// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	_ "embed"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

//go:embed testdata/4.0.8-statefulsets.json
var statefulSets []byte

// recordedStatefulSets are what the function worker of Pulsar 4.0.8 made for functions of each kind, by their names.
func recordedStatefulSets(t testing.TB) map[string]*unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	require.NoError(t, list.UnmarshalJSON(statefulSets))
	all := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		all[list.Items[i].GetName()] = &list.Items[i]
	}
	return all
}

// statefulSetPolicy scales a StatefulSet of namespace default.
func statefulSetPolicy(name string) *v1alpha1.AutoscalingPolicy {
	p := testPolicy()
	p.Namespace, p.Name = "default", "p"
	p.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "StatefulSet", Name: name}
	p.Spec.Pulsar = &v1alpha1.PulsarConnection{AdminURL: "http://pulsar:8080"}
	return p
}

// withCommand gives the containers another command.
func withCommand(t *testing.T, object *unstructured.Unstructured, command []any) {
	t.Helper()
	require.NoError(t,
		unstructured.SetNestedSlice(object.Object, []any{map[string]any{"name": "c", "command": command}}, "spec", "template",
			"spec", "containers"))
}

// testStatefulSet is that of testFunction, changed as given.
func testStatefulSet(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	set := statefulSetObject()
	set.SetNamespace(testNamespace)
	set.SetName("resize-function")
	set.Object["status"] = map[string]any{
		"currentRevision": "a", "updateRevision": "a", "replicas": int64(3), "updatedReplicas": int64(3),
	}
	if change != nil {
		change(set)
	}
	return set
}

// statefulSetObject is an empty StatefulSet.
func statefulSetObject() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("apps/v1")
	object.SetKind("StatefulSet")
	return object
}
