// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

type object map[string]any

// Schema returns the JSON Schema (2020-12) of a trigger's metadata, for editors and for checks before a ScaledObject is
// applied. Whatever Decode accepts matches it. It also accepts some metadata that Decode rejects and no pattern can
// express: the bounds of messagesPerSecondPerReplica, more than 100 topics, and "." and ".." as names.
func Schema() ([]byte, error) {
	var branches []any
	for _, f := range forms() {
		branches = append(branches, schemaOf(f))
	}
	definitions := object{}
	for _, k := range keys {
		definitions[k.name] = object{
			"type": "string", "description": k.about, "maxLength": k.most,
			"pattern": "^(" + k.pattern + ")$",
		}
	}
	text, err := json.MarshalIndent(object{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Metadata of a KEDA trigger of type external or external-push for the scaler of pulsar-autoscaler",
		"description": "Generated from the table that the scaler decodes by; all values are strings, so quote numbers in " +
			"YAML.",
		"type":  "object",
		"oneOf": branches,
		"$defs": definitions,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the schema of trigger metadata: %w", err)
	}
	return append(text, '\n'), nil
}

func schemaOf(f form) object {
	properties, required := object{}, []string{}
	for _, k := range keys {
		if !slices.Contains(k.forms, f) {
			continue
		}
		properties[k.name] = object{"$ref": "#/$defs/" + k.name}
		if k.required {
			required = append(required, k.name)
		}
	}
	strategies := strategiesOf(f)
	properties[keyStrategy] = object{"enum": strategies, "description": "See $defs/strategy."}
	schema := object{"title": string(f), "required": required, "properties": properties, "additionalProperties": false}
	if f == formPolicy {
		schema["dependentRequired"] = object{keyActivationMessages: []string{keyStrategy}}
		return schema
	}
	var cases []any
	for _, strategy := range strategies {
		cases = append(cases, schemaOfStrategy(f, strategy))
	}
	schema["oneOf"] = cases
	return schema
}

func strategiesOf(f form) []v1alpha1.StrategyType {
	strategies := []v1alpha1.StrategyType{v1alpha1.StrategyBacklogPerReplica, v1alpha1.StrategyRatePerReplica}
	if f != formTopic { // its consumers do not report how busy they are
		strategies = append(strategies, v1alpha1.StrategyUtilization)
	}
	return strategies
}

// schemaOfStrategy allows only the keys of a strategy: its threshold and no other's.
func schemaOfStrategy(f form, strategy v1alpha1.StrategyType) object {
	properties, required := object{keyStrategy: object{"const": strategy}}, []string{}
	for other, threshold := range thresholds() {
		switch {
		case other == strategy:
			required = append(required, threshold)
		case slices.Contains(strategiesOf(f), other):
			properties[threshold] = false
		}
	}
	return object{"title": string(strategy), "properties": properties, "required": required}
}
