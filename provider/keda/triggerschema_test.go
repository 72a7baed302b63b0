// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

const schemaFile = "../../docs/keda-trigger.schema.json"

func TestThePublishedSchemaIsTheTables(t *testing.T) {
	text, err := schemaOfTriggers()
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(schemaFile, text, 0o600))
	}
	published, err := os.ReadFile(schemaFile)
	require.NoError(t, err)
	require.Equal(t, string(published), string(text), "update it with -update")
}

type object map[string]any

// schemaOfTriggers returns the JSON Schema (2020-12) of a trigger's metadata, for editors and for checks before a
// ScaledObject is applied. Whatever Decode accepts matches it. It also accepts some metadata that Decode rejects and no
// pattern can express: the bounds of messagesPerSecondPerReplica, more than 100 topics, and "." and ".." as names.
func schemaOfTriggers() ([]byte, error) {
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

func TestTheSchemaAndTheDecoderAgree(t *testing.T) {
	schema := readSchema(t)
	for name, test := range good() {
		t.Run("on "+name, func(t *testing.T) { require.NoError(t, schema.check(test.metadata)) })
	}
	for name, test := range bad() {
		t.Run("on "+name, func(t *testing.T) {
			if test.beyond {
				require.NoError(t, schema.check(test.metadata), "it is no matter of the schema: strike beyond")
				return
			}
			require.Error(t, schema.check(test.metadata))
		})
	}
}

// TestSchemaAndDecoderAgreeOnAllChoicesOfKeys compares schema and Decode for all choices of up to five keys.
func TestSchemaAndDecoderAgreeOnAllChoicesOfKeys(t *testing.T) {
	schema := readSchema(t)
	values := map[string][]string{
		"policy": {"a"}, "target": {"Sink/a"}, "function": {"a"}, "sink": {"a/b/c"}, "topic": {"a"}, "subscription": {"s"},
		"connection":         {"c"},
		"strategy":           {"Capacity", "BacklogPerReplica", "RatePerReplica", "Utilization"},
		"messagesPerReplica": {"1"}, "messagesPerSecondPerReplica": {"1"}, "targetPercent": {"1"}, "latencyObjective": {"1s"},
		"activationMessages": {"1"}, "scalerAddress": {"x"}, "other": {"x"},
	}
	type pair struct{ name, value string }
	var pairs []pair
	for name, some := range values {
		for _, value := range some {
			pairs = append(pairs, pair{name, value})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int { return strings.Compare(a.name+a.value, b.name+b.value) })
	checked, taken := 0, 0
	var walk func(from int, chosen metadata)
	walk = func(from int, chosen metadata) {
		_, err := Decode(testObject(), chosen)
		require.Equal(t, err == nil, schema.check(chosen) == nil, "%v: %v", chosen, err)
		checked++
		if err == nil {
			taken++
		}
		for i := from; i < len(pairs) && len(chosen) < 5; i++ {
			if _, set := chosen[pairs[i].name]; set {
				continue
			}
			chosen[pairs[i].name] = pairs[i].value
			walk(i+1, chosen)
			delete(chosen, pairs[i].name)
		}
	}
	walk(0, metadata{})
	require.Greater(t, checked, 9_000)
	require.Greater(t, taken, 100)
}

// schemaNode is the part of JSON Schema that the published one uses; any other keyword fails to decode.
type schemaNode struct {
	Schema               string                `json:"$schema"`
	Title                string                `json:"title"`
	Description          string                `json:"description"`
	Type                 string                `json:"type"`
	Ref                  string                `json:"$ref"`
	Defs                 map[string]schemaNode `json:"$defs"`
	OneOf                []schemaNode          `json:"oneOf"`
	Required             []string              `json:"required"`
	Properties           map[string]schemaNode `json:"properties"`
	AdditionalProperties *bool                 `json:"additionalProperties"`
	DependentRequired    map[string][]string   `json:"dependentRequired"`
	Pattern              string                `json:"pattern"`
	MaxLength            *int                  `json:"maxLength"`
	Const                string                `json:"const"`
	Enum                 []string              `json:"enum"`

	never bool
	look  map[string]*regexp.Regexp
}

func (s *schemaNode) UnmarshalJSON(text []byte) error {
	if string(text) == "false" {
		s.never = true
		return nil
	}
	type plain schemaNode
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	return decoder.Decode((*plain)(s))
}

func readSchema(t testing.TB) *schemaNode {
	t.Helper()
	text, err := os.ReadFile(schemaFile)
	require.NoError(t, err)
	schema := &schemaNode{}
	require.NoError(t, json.Unmarshal(text, schema))
	require.Equal(t, "https://json-schema.org/draft/2020-12/schema", schema.Schema)
	looks := map[string]*regexp.Regexp{}
	for name, definition := range schema.Defs {
		looks[name] = regexp.MustCompile(definition.Pattern)
	}
	schema.look = looks
	return schema
}

// check validates metadata.
func (s *schemaNode) check(fuzzed metadata) error {
	if s.Type != "object" {
		return fmt.Errorf("the schema is of type %s", s.Type)
	}
	return s.object(s, fuzzed)
}

func (s *schemaNode) object(root *schemaNode, fuzzed metadata) error {
	for _, name := range s.Required {
		if _, set := fuzzed[name]; !set {
			return fmt.Errorf("%s is missing", name)
		}
	}
	for name, needed := range s.DependentRequired {
		for _, other := range needed {
			if _, set := fuzzed[name]; set && fuzzed[other] == "" {
				return fmt.Errorf("%s needs %s", name, other)
			}
		}
	}
	for name, value := range fuzzed {
		property, known := s.Properties[name]
		if !known && s.AdditionalProperties != nil && !*s.AdditionalProperties {
			return fmt.Errorf("%s is unknown", name)
		}
		if known {
			if err := property.text(root, value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	matching := 0
	for _, branch := range s.OneOf {
		if branch.object(root, fuzzed) == nil {
			matching++
		}
	}
	if len(s.OneOf) > 0 && matching != 1 {
		return fmt.Errorf("%d of the cases match", matching)
	}
	return nil
}

func (s *schemaNode) text(root *schemaNode, value string) error {
	if s.never {
		return fmt.Errorf("%q may not be set", value)
	}
	if s.Ref != "" {
		name := strings.TrimPrefix(s.Ref, "#/$defs/")
		definition, known := root.Defs[name]
		if !known || definition.Type != "string" || definition.MaxLength == nil {
			return fmt.Errorf("%s is not a definition of a string", s.Ref)
		}
		if !root.look[name].MatchString(value) || utf8.RuneCountInString(value) > *definition.MaxLength {
			return fmt.Errorf("%q does not match", value)
		}
	}
	if s.Const != "" && s.Const != value || s.Enum != nil && !slices.Contains(s.Enum, value) {
		return fmt.Errorf("%q is not among the words", value)
	}
	return nil
}
