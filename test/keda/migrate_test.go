// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
)

// requireTranslatable creates the objects that package policy/migrate translates, and deletes them before KEDA runs.
func requireTranslatable(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	people := c.Client
	require.NoError(t, people.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))
	text, err := os.ReadFile(filepath.Join("..", "..", "policy", "migrate", "testdata", "scaledobjects.yaml"))
	require.NoError(t, err)
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), &object.Object))
		require.NoError(t, people.Create(t.Context(), object, client.FieldValidation(metav1.FieldValidationStrict)))
		require.NoError(t, people.Delete(t.Context(), object))
	}
}
