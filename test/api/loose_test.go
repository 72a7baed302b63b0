// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
)

// withLooseSchema does work while the definition has neither rules nor defaults, as an older one.
func withLooseSchema(t *testing.T, name string, work func()) {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = name
	require.NoError(t, people.Get(t.Context(), client.ObjectKeyFromObject(definition), definition))
	strict := definition.Spec.Versions[0].Schema
	anything := true
	write := func(schema *apiextensionsv1.CustomResourceValidation) {
		require.NoError(t, people.Get(t.Context(), client.ObjectKeyFromObject(definition), definition))
		definition.Spec.Versions[0].Schema = schema
		require.NoError(t, people.Update(t.Context(), definition))
	}
	write(&apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", XPreserveUnknownFields: &anything,
	}})
	awaitDefaults(t, false)
	defer func() {
		write(strict)
		awaitDefaults(t, true)
	}()
	work()
}

// awaitDefaults waits until the API server has taken over a changed definition.
func awaitDefaults(t *testing.T, want bool) {
	t.Helper()
	err := cluster.WaitFor(t.Context(), fmt.Sprintf("defaults %t", want), 50*time.Millisecond,
		func(ctx context.Context) (bool, string, error) {
			probe := manifest("probe", functionPolicy(nil))
			if err := people.Create(ctx, probe, client.DryRunAll); err != nil {
				return false, "", err
			}
			_, found, err := unstructured.NestedInt64(probe.Object, "spec", "minReplicas")
			return found == want, fmt.Sprintf("minReplicas %t", found), err
		})
	require.NoError(t, err)
}

func removeAll(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		require.NoError(t, client.IgnoreNotFound(people.Delete(context.WithoutCancel(t.Context()), object)))
	}
}
