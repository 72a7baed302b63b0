// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// schema is the part of OpenAPI that kubectl explain shows.
type schema struct {
	Description string            `json:"description"`
	Type        string            `json:"type"`
	Properties  map[string]schema `json:"properties"`
	Items       *schema           `json:"items"`
	AllOf       []schema          `json:"allOf"`
}

// TestEveryFieldIsExplained reads what kubectl explain does.
func TestEveryFieldIsExplained(t *testing.T) {
	onControlPlane(t)
	body, err := raw(t).Get().AbsPath("/openapi/v3/apis/pulsar-autoscaler.io/v1alpha1").Do(t.Context()).Raw()
	require.NoError(t, err)
	var document struct {
		Components struct {
			Schemas map[string]schema `json:"schemas"`
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal(body, &document))
	policy, found := document.Components.Schemas["io.pulsar-autoscaler.v1alpha1.AutoscalingPolicy"]
	require.True(t, found, "schemas %v", slices.Collect(maps.Keys(document.Components.Schemas)))
	require.Contains(t, policy.Description,
		"AutoscalingPolicy keeps the messages of a Pulsar Function, Sink or batch Source")
	seen := 0
	for _, part := range []string{"spec", "status"} {
		walk(part, policy.Properties[part], func(path string, field schema) {
			seen++
			text := strings.TrimSpace(field.Description)
			require.NotEmpty(t, text, "%s is not explained", path)
			require.True(t, strings.HasSuffix(text, "."), "%s does not end like a sentence: %q", path, text)
			require.GreaterOrEqual(t, len(strings.Fields(text)), 3, "%s says nothing: %q", path, text)
			for _, word := range []string{"kubebuilder", "+optional", "+required", "TODO", "omitempty"} {
				require.NotContains(t, text, word, path)
			}
		})
	}
	require.Greater(t, seen, 60, "fields")
}

// walk visits the fields below one; those of conditions are Kubernetes' own.
func walk(path string, field schema, visit func(string, schema)) {
	visit(path, field)
	if field.Items != nil && path != "status.conditions" {
		field.Properties = field.Items.Properties
		path += "[]"
	}
	for _, name := range slices.Sorted(maps.Keys(field.Properties)) {
		walk(path+"."+name, field.Properties[name], visit)
	}
}
