// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/deploy/crd"
)

// maxBytes of a manifest, close to the limit of the API server.
const maxBytes = 1 << 20

// Policy reads one AutoscalingPolicy with its defaults.
func Policy(ctx context.Context, from io.Reader) (v1alpha1.AutoscalingPolicy, error) {
	var policy v1alpha1.AutoscalingPolicy
	text, err := io.ReadAll(io.LimitReader(from, maxBytes+1))
	if err != nil {
		return policy, fmt.Errorf("reading the policy: %w", err)
	}
	if len(text) > maxBytes {
		return policy, errors.New("the file is larger than 1 MiB: it must have one AutoscalingPolicy")
	}
	fields, err := decode(text)
	if err != nil {
		return policy, err
	}
	definition, err := policySchema()
	if err != nil {
		return policy, err
	}
	if err := definition.apply(ctx, fields); err != nil {
		return policy, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &policy); err != nil {
		return policy, fmt.Errorf("decoding the policy: %w", err)
	}
	return policy, nil
}

func decode(text []byte) (map[string]any, error) {
	for _, line := range strings.Split(strings.TrimPrefix(strings.TrimSpace(string(text)), "---"), "\n") {
		if strings.TrimRight(line, " \r") == "---" {
			return nil, errors.New("the file has several documents: it must have one AutoscalingPolicy")
		}
	}
	encoded, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("decoding YAML: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return nil, fmt.Errorf("decoding the policy: it must be an object: %w", err)
	}
	const kind = "AutoscalingPolicy"
	if version := v1alpha1.GroupVersion().String(); fields["apiVersion"] != version || fields["kind"] != kind {
		return nil, fmt.Errorf("apiVersion is %v and kind %v: they must be %s and %s", fields["apiVersion"], fields["kind"],
			version, kind)
	}
	return fields, nil
}

// definition is the schema of a CustomResourceDefinition.
type definition struct {
	props      *apiextensions.JSONSchemaProps
	structural *schema.Structural
}

func policySchema() (definition, error) {
	var resource apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(crd.AutoscalingPolicies, &resource); err != nil {
		return definition{}, fmt.Errorf("decoding the CustomResourceDefinition: %w", err)
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		resource.Spec.Versions[0].Schema.OpenAPIV3Schema, props, nil); err != nil {
		return definition{}, fmt.Errorf("converting the CustomResourceDefinition: %w", err)
	}
	structural, err := schema.NewStructural(props)
	if err != nil {
		return definition{}, fmt.Errorf("reading the CustomResourceDefinition: %w", err)
	}
	return definition{props: props, structural: structural}, nil
}

// apply sets the defaults of an object and validates it.
func (d definition) apply(ctx context.Context, fields map[string]any) error {
	unknown := pruning.PruneWithOptions(fields, d.structural, true,
		schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		return fmt.Errorf("unknown field %s: see kubectl explain autoscalingpolicy.spec", strings.Join(unknown, ", "))
	}
	defaulting.Default(fields, d.structural)
	validator, _, err := validation.NewSchemaValidator(d.props)
	if err != nil {
		return fmt.Errorf("preparing validation: %w", err)
	}
	problems := validation.ValidateCustomResource(nil, fields, validator)
	if len(problems) == 0 { // rules require an object that fits the schema
		problems, _ = cel.NewValidator(d.structural, true, celconfig.PerCallLimit).
			Validate(ctx, nil, d.structural, fields, nil, celconfig.RuntimeCELCostBudget)
	}
	if err := problems.ToAggregate(); err != nil {
		return fmt.Errorf("the policy is invalid: %w", err)
	}
	return nil
}
