// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/deploy/crd"
)

// mostFields that a CRD lacks are named.
const mostFields = 5

// missingFields are fields of policies that this program knows and the CRD of the cluster does not have, as in an older
// one. Other CRDs are not compared.
func missingFields(live *apiextensionsv1.CustomResourceDefinition) ([]string, error) {
	var known apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(crd.AutoscalingPolicies, &known); err != nil {
		return nil, fmt.Errorf("decoding the CRD of policies: %w", err)
	}
	if live.Name != known.Name {
		return nil, nil
	}
	var missing []string
	for _, v := range known.Spec.Versions {
		at := slices.IndexFunc(live.Spec.Versions, func(other apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return other.Name == v.Name && other.Schema != nil
		})
		if at >= 0 {
			other := live.Spec.Versions[at].Schema.OpenAPIV3Schema
			missing = append(missing, absentFields("", v.Schema.OpenAPIV3Schema, other)...)
		}
	}
	if more := len(missing) - mostFields; more > 0 {
		missing = append(missing[:mostFields], fmt.Sprintf("and %d more", more))
	}
	return missing, nil
}

// absentFields are the paths of fields of a schema that the other does not have.
func absentFields(path string, known, live *apiextensionsv1.JSONSchemaProps) (paths []string) {
	for _, name := range slices.Sorted(maps.Keys(known.Properties)) {
		field := known.Properties[name]
		if other, found := live.Properties[name]; found {
			paths = append(paths, absentFields(path+name+".", &field, &other)...)
		} else {
			paths = append(paths, path+name)
		}
	}
	if known.Items != nil && known.Items.Schema != nil && live.Items != nil && live.Items.Schema != nil {
		paths = append(paths, absentFields(path, known.Items.Schema, live.Items.Schema)...)
	}
	return paths
}
