// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// decodeText decodes an object written as JSON, which is how the API server sends it.
func decodeText(t testing.TB, kind, text string) workload {
	t.Helper()
	var object map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &object))
	w, err := decodeWorkload(kind, object)
	require.NoError(t, err)
	return w
}

func TestTheInputsAreTheUnionOfAllTheirFields(t *testing.T) {
	tests := map[string]struct {
		kind     string
		spec     string
		topics   []string
		patterns []string
		invalid  string
	}{
		"topics alone": {spec: `{"input":{"topics":["b","a"]}}`, topics: short("a", "b")},
		"every field, each topic once": {
			spec: `{"input":{"topics":["a"],"customSerdeSources":{"b":"S"},"customSchemaSources":{"c":"J"},
				"sourceSpecs":{"a":{},"d":{"schemaType":"avro","receiverQueueSize":10}}}}`,
			topics: short("a", "b", "c", "d"),
		},
		"a Sink like a Function": {
			kind: kindSink, spec: `{"input":{"topics":["a"]},"sinkConfig":{"x":1}}`,
			topics: short("a"),
		},
		"short and complete names of one topic": {
			spec:   `{"input":{"topics":["a"],"sourceSpecs":{"persistent://public/default/a":{},"t/n/b":{}}}}`,
			topics: append(short("a"), "persistent://t/n/b"),
		},
		"patterns beside topics": {
			spec:   `{"input":{"topics":["a"],"topicPattern":"in-.*","sourceSpecs":{"persistent://t/n/out-.*":{"isRegexPattern":true}}}}`,
			topics: short("a"), patterns: append(short("in-.*"), "persistent://t/n/out-.*"),
		},
		"a pattern alone": {spec: `{"input":{"topicPattern":"a.*"}}`, patterns: short("a.*")},
		"a pattern that is a source without the flag": {
			spec:   `{"input":{"topicPattern":"a","sourceSpecs":{"a":{}}}}`,
			topics: short("a"),
		},
		"a pattern that is a schema source": {
			spec:   `{"input":{"topicPattern":"a","customSchemaSources":{"a":"J"}}}`,
			topics: short("a"),
		},
		"a topic that is a source with the flag": {spec: `{"input":{"topics":["a"],"sourceSpecs":{"a":{"isRegexPattern":true}}}}`, patterns: short("a")},
		"a pattern that Java alone can read": {
			spec:    `{"input":{"topicPattern":"a(?=b).*"}}`,
			invalid: `the inputs of the Function cannot be told: not supported: topic pattern "a(?=b).*"`,
		},
		"a Go function consumes its first topic only": {spec: `{"golang":{"go":"main"},"input":{"topics":["z","a"],"sourceSpecs":{"b":{}},"topicPattern":"x.*"}}`, topics: short("z")},
		"a Go function without topics": {
			spec:    `{"golang":{},"input":{"sourceSpecs":{"b":{}}}}`,
			invalid: "set spec.input.topics",
		},
		"no input at all": {
			kind: kindSink, spec: `{}`,
			invalid: "the Sink has no input topics, so it has no backlog: list them in spec.input.topics",
		},
		"an empty name is not an input": {
			spec:    `{"input":{"topics":[""]}}`,
			invalid: "list them in spec.input.topics",
		},
		"a batch Source consumes the tasks it found": {
			kind:   kindSource,
			spec:   `{"tenant":"t","name":"crawl","batchSourceConfig":{}}`,
			topics: []string{"persistent://t/default/crawl-intermediate"},
		},
		"a Source consumes nothing": {
			kind: kindSource, spec: `{"sourceConfig":{"className":7}}`,
			invalid: "there is no backlog to scale on",
		},
		"a Function that reads through a source":        {spec: `{"input":{"topics":["a"]},"sourceConfig":{"className":"org.Kafka"}}`, invalid: "reads from org.Kafka"},
		"a Function whose source's settings name it":    {spec: `{"input":{"topics":["a"]},"sourceConfig":{"sourceType":"x","configs":{"className":"org.Kafka"}}}`, invalid: "reads from org.Kafka"},
		"a Function with settings of its source's type": {spec: `{"input":{"topics":["a"]},"sourceConfig":{"sourceType":"x"}}`, topics: short("a")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, invalid := decodeText(t, withDefault(test.kind, kindFunction),
				`{"metadata":{"name":"f"},"spec":`+test.spec+`}`).consumed()
			if test.invalid != "" {
				require.Contains(t, invalid, test.invalid)
				return
			}
			require.Empty(t, invalid)
			require.Equal(t, test.topics, nilWhenEmpty(c.subscription.Topics))
			require.Equal(t, test.patterns, nilWhenEmpty(c.subscription.Patterns))
		})
	}
}

// short completes names in public/default.
func short(names ...string) []string {
	complete := make([]string, 0, len(names))
	for _, name := range names {
		complete = append(complete, "persistent://public/default/"+name)
	}
	return complete
}

func nilWhenEmpty(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

func TestTheSubscriptionIsNamedAndTypedAsPulsarDoes(t *testing.T) {
	const mine = `"sourceSpecs":{"a":{"consumerProperties":{"subscriptionName":"mine","subscriptionType":"Key_Shared"}}}`
	tests := map[string]struct {
		kind, spec, subscription string
		subscriptionType         backlog.SubscriptionType
		invalid                  string
	}{
		"all by default": {
			spec: `"input":{"topics":["a"]}`, subscription: "public/default/mesh-resize",
			subscriptionType: backlog.Shared,
		},
		"by its own fields": {
			spec:         `"tenant":"t","namespace":"n","name":"resize","input":{"topics":["a"]}`,
			subscription: "t/n/resize", subscriptionType: backlog.Shared,
		},
		"by name": {
			spec:         `"tenant":"t","subscriptionName":"mine","input":{"topics":["a"]}`,
			subscription: "mine", subscriptionType: backlog.Shared,
		},
		"a Sink": {
			kind: kindSink, spec: `"name":"s","retainOrdering":true,"input":{"topics":["a"]}`,
			subscription: "public/default/s", subscriptionType: backlog.Failover,
		},
		"a batch Source": {
			kind:         kindSource,
			spec:         `"batchSourceConfig":{},"processingGuarantee":"effectively_once"`,
			subscription: "BatchSourceExecutor-public/default/mesh-resize", subscriptionType: backlog.Shared,
		},
		"effectively once": {spec: `"processingGuarantee":"effectively_once","retainKeyOrdering":true,"input":{"topics":["a"]}`, subscription: "public/default/mesh-resize", subscriptionType: backlog.Failover},
		"both orders": {
			spec:         `"retainOrdering":true,"retainKeyOrdering":true,"input":{"topics":["a"]}`,
			subscription: "public/default/mesh-resize", subscriptionType: backlog.Failover,
		},
		"by key": {
			spec:         `"retainKeyOrdering":true,"processingGuarantee":"manual","input":{"topics":["a"]}`,
			subscription: "public/default/mesh-resize", subscriptionType: backlog.KeyShared,
		},
		"Go forgets the order": {
			spec:         `"golang":{},"retainOrdering":true,"input":{"topics":["a"]}`,
			subscription: "public/default/mesh-resize", subscriptionType: backlog.Shared,
		},
		"consumer properties win in Java": {
			spec: `"retainOrdering":true,"input":{` + mine + `}`, subscription: "mine",
			subscriptionType: backlog.KeyShared,
		},
		"and are metadata in Python": {
			spec:         `"python":{},"input":{` + mine + `}`,
			subscription: "public/default/mesh-resize", subscriptionType: backlog.Shared,
		},
		"and have to agree": {
			spec: `"input":{"topics":["b"],` + mine + `}`,
			invalid: "consumerProperties make b subscribe as public/default/mesh-resize (Shared) and another as mine " +
				"(Key_Shared)",
		},
		"and have to be known": {
			spec:    `"input":{"sourceSpecs":{"a":{"consumerProperties":{"subscriptionType":"KEY_SHARED"}}}}`,
			invalid: `subscriptionType "KEY_SHARED"`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, invalid := decodeText(t, withDefault(test.kind, kindFunction),
				`{"metadata":{"name":"mesh-resize"},"spec":{`+test.spec+`}}`).consumed()
			if test.invalid != "" {
				require.Contains(t, invalid, test.invalid)
				return
			}
			require.Empty(t, invalid)
			require.Equal(t, test.subscription, c.subscription.Name)
			require.Equal(t, test.subscriptionType, c.kind)
		})
	}
}

func TestOnlyAWindowThatLeavesItToUserCodeNeverAcknowledges(t *testing.T) {
	tests := map[string]struct {
		spec  string
		never bool
	}{
		"no window": {`{"processingGuarantee":"manual"}`, false},
		"acknowledged on receipt": {
			`{"processingGuarantee":"atleast_once","windowConfig":{"windowLengthCount":10}}`,
			false,
		},
		"acknowledged by default":    {`{"windowConfig":{}}`, false},
		"acknowledged by the window": {`{"processingGuarantee":"manual","windowConfig":{"processingGuarantees":"ATLEAST_ONCE"}}`, false},
		"acknowledged by nobody":     {`{"processingGuarantee":"manual","windowConfig":{"windowLengthCount":10}}`, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.never, decodeText(t, kindFunction, `{"spec":`+test.spec+`}`).neverAcknowledges())
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
			_, err := decodeWorkload(kindFunction, object)
			require.Error(t, err)
		})
	}
}

func FuzzDecodeWorkload(f *testing.F) {
	f.Add(`{"metadata":{"name":"f","namespace":"n"},"spec":{"replicas":3,"maxReplicas":5,"input":{"topics":["a"]}}}`)
	f.Add(`{"metadata":{"ownerReferences":[{"controller":true,"kind":"FunctionMesh"}]},"spec":{"golang":null,"input":null}}`)
	f.Add(`{"spec":{"input":{"sourceSpecs":{"a":null,"b":{"isRegexPattern":1}}}}}`)
	f.Add(`{"spec":{"batchSourceConfig":{},"sourceConfig":{"className":"x"}}}`)
	f.Add(`{"spec":{"input":{"topicPattern":"(","sourceSpecs":{"a":{"consumerProperties":{"subscriptionName":"x"}}}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil {
			t.Skip("not an object")
		}
		for _, kind := range workloadKinds() {
			decoded, err := decodeWorkload(kind, object)
			if err != nil {
				continue
			}
			c, invalid := decoded.consumed()
			if invalid != "" {
				continue
			}
			require.NotEmpty(t, slices.Concat(c.subscription.Topics, c.subscription.Patterns), "topics, or why there are none")
			require.True(t, slices.IsSorted(c.subscription.Topics))
			require.True(t, slices.IsSorted(c.subscription.Patterns))
			require.NotEmpty(t, c.subscription.Name)
			require.NotEmpty(t, c.kind)
		}
	})
}
