// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// decodeText decodes a Function written as JSON, which is how the API server sends it.
func decodeText(t testing.TB, text string) function {
	t.Helper()
	var object map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &object))
	f, err := decodeFunction(object)
	require.NoError(t, err)
	return f
}

func TestTheInputsOfAFunctionAreTheUnionOfAllItsFields(t *testing.T) {
	tests := map[string]struct {
		spec    string
		topics  []string
		invalid string
	}{
		"topics alone": {spec: `{"input":{"topics":["b","a"]}}`, topics: []string{"a", "b"}},
		"every field, each topic once": {
			spec: `{"input":{"topics":["a"],"customSerdeSources":{"b":"S"},"customSchemaSources":{"c":"J"},
				"sourceSpecs":{"a":{},"d":{"schemaType":"avro","receiverQueueSize":10}}}}`,
			topics: []string{"a", "b", "c", "d"},
		},
		"a Go function consumes its first topic only": {
			spec: `{"golang":{"go":"main"},"input":{"topics":["z","a"],"sourceSpecs":{"b":{}},"topicPattern":"x.*"}}`, topics: []string{"z"},
		},
		"a Go function without topics":  {spec: `{"golang":{},"input":{"sourceSpecs":{"b":{}}}}`, invalid: "set spec.input.topics"},
		"a pattern":                     {spec: `{"input":{"topics":["a"],"topicPattern":"a.*"}}`, invalid: "spec.input.topicPattern is not supported yet: list the topics in spec.input.topics"},
		"a source that is a pattern":    {spec: `{"input":{"sourceSpecs":{"a.*":{"isRegexPattern":true}}}}`, invalid: "list the topics in spec.input.topics"},
		"no input at all":               {spec: `{}`, invalid: "list them in spec.input.topics"},
		"an empty name is not an input": {spec: `{"input":{"topics":[""]}}`, invalid: "list them in spec.input.topics"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			topics, invalid := decodeText(t, `{"metadata":{"name":"f"},"spec":`+test.spec+`}`).topics()
			require.Equal(t, test.topics, topics)
			if test.invalid == "" {
				require.Empty(t, invalid)
			} else {
				require.Contains(t, invalid, test.invalid)
			}
		})
	}
}

func TestTheSubscriptionIsNamedAsPulsarNamesIt(t *testing.T) {
	tests := map[string]struct{ spec, subscription string }{
		"all by default":               {`{}`, "public/default/mesh-resize"},
		"by the Function's own fields": {`{"tenant":"t","namespace":"n","name":"resize"}`, "t/n/resize"},
		"by name":                      {`{"tenant":"t","subscriptionName":"mine"}`, "mine"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.subscription, decodeText(t, `{"metadata":{"name":"mesh-resize"},"spec":`+test.spec+`}`).subscriptionName())
		})
	}
}

func TestAFunctionThatIsNotOneIsAnError(t *testing.T) {
	for name, object := range map[string]map[string]any{
		"replicas are a text":   {"spec": map[string]any{"replicas": "three"}},
		"topics are a text":     {"spec": map[string]any{"input": map[string]any{"topics": "a,b"}}},
		"the spec is a list":    {"spec": []any{}},
		"an owner is not named": {"metadata": map[string]any{"ownerReferences": "mesh"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeFunction(object)
			require.Error(t, err)
		})
	}
}

func FuzzDecodeFunction(f *testing.F) {
	f.Add(`{"metadata":{"name":"f","namespace":"n"},"spec":{"replicas":3,"maxReplicas":5,"input":{"topics":["a"]}}}`)
	f.Add(`{"metadata":{"ownerReferences":[{"controller":true,"kind":"FunctionMesh"}]},"spec":{"golang":null,"input":null}}`)
	f.Add(`{"spec":{"input":{"sourceSpecs":{"a":null,"b":{"isRegexPattern":1}}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil {
			t.Skip("not an object")
		}
		decoded, err := decodeFunction(object)
		if err != nil {
			return
		}
		topics, invalid := decoded.topics()
		require.NotEqual(t, len(topics) == 0, invalid == "", "either topics or why there are none")
		require.NotContains(t, topics, "")
		require.True(t, slices.IsSorted(topics))
		require.NotEmpty(t, decoded.subscriptionName())
	})
}
