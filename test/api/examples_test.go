// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// TestTheAPIServerTakesTheExamples of docs/examples, one object a file.
func TestTheAPIServerTakesTheExamples(t *testing.T) {
	onControlPlane(t)
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "examples", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			object := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal(text, &object.Object))
			object.SetNamespace(namespace) // theirs does not exist
			require.NoError(t, people.Create(t.Context(), object, client.DryRunAll,
				client.FieldValidation(metav1.FieldValidationStrict)))
		})
	}
}
