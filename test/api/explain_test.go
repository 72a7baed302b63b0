// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
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
	Default     any               `json:"default"`
	Minimum     *float64          `json:"minimum"`
	Maximum     *float64          `json:"maximum"`
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
	for kind, test := range map[string]struct {
		description string
		least       int
	}{
		"AutoscalingPolicy":    {"AutoscalingPolicy scales one target so that its messages meet a latency objective", 60},
		"AutoscalingPolicySet": {"AutoscalingPolicySet creates an AutoscalingPolicy for each object", 40},
	} {
		t.Run(kind, func(t *testing.T) {
			top, found := document.Components.Schemas["io.pulsar-autoscaler.v1alpha1."+kind]
			require.True(t, found, "schemas %v", slices.Collect(maps.Keys(document.Components.Schemas)))
			require.Contains(t, top.Description, test.description)
			require.Greater(t, explained(t, top), test.least, "fields")
		})
	}
}

// explained counts the fields of a kind, and fails where one is not explained.
func explained(t *testing.T, top schema) (seen int) {
	t.Helper()
	for _, part := range []string{"spec", "status"} {
		walk(part, top.Properties[part], func(path string, field schema) {
			seen++
			text := strings.TrimSpace(field.Description)
			require.NotEmpty(t, text, "%s is not explained", path)
			for line := range strings.Lines(text) {
				require.True(t, strings.HasSuffix(strings.TrimSpace(line), "."), "%s: a line is no sentence: %q", path, line)
			}
			require.GreaterOrEqual(t, len(strings.Fields(text)), 3, "%s says nothing: %q", path, text)
			for _, word := range []string{"kubebuilder", "+optional", "+required", "TODO", "omitempty"} {
				require.NotContains(t, text, word, path)
			}
			if part == "spec" {
				requireLimits(t, path, field)
			}
		})
	}
	return seen
}

// requireLimits fails where the text of a field does not have its default and its bounds.
func requireLimits(t *testing.T, path string, field schema) {
	t.Helper()
	switch field.Default.(type) {
	case string, float64, bool:
		require.Contains(t, field.Description, fmt.Sprintf("Default: %v.", field.Default), path)
	}
	if field.Minimum == nil || field.Maximum == nil {
		return
	}
	bounds := fmt.Sprintf("from %d to %d", int64(*field.Minimum), int64(*field.Maximum))
	bounds = strings.ReplaceAll(bounds, "1000000000000", "10^12") // as people read it
	require.Contains(t, field.Description, bounds, path)
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
