// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestTheInputsOfAMeshObjectAreTheUnionOfTheirFields(t *testing.T) {
	tests := map[string]struct {
		kind             Kind
		spec             string
		topics, patterns []string
		refused          string
	}{
		"only topics": {spec: `{"input":{"topics":["b","a"]}}`, topics: []string{"a", "b"}},
		"every field, each topic once": {
			spec: `{"input":{"topics":["a"],"customSerdeSources":{"b":"S"},"customSchemaSources":{"c":"J"},
				"sourceSpecs":{"a":{},"d":{"schemaType":"avro","receiverQueueSize":10}}}}`,
			topics: []string{"a", "b", "c", "d"},
		},
		"a Sink like a Function": {
			kind: KindSink, spec: `{"input":{"topics":["a"]},"sinkConfig":{"x":1}}`, topics: []string{"a"},
		},
		"patterns beside topics": {
			spec:     `{"input":{"topics":["a"],"topicPattern":"in-.*","sourceSpecs":{"persistent://t/n/out-.*":{"isRegexPattern":true}}}}`,
			topics:   []string{"a"},
			patterns: []string{"in-.*", "persistent://t/n/out-.*"},
		},
		"only a pattern": {spec: `{"input":{"topicPattern":"a.*"}}`, patterns: []string{"a.*"}},
		"a pattern that is a source without the flag": {
			spec: `{"input":{"topicPattern":"a","sourceSpecs":{"a":{}}}}`, topics: []string{"a"},
		},
		"a pattern that is a schema source": {
			spec: `{"input":{"topicPattern":"a","customSchemaSources":{"a":"J"}}}`, topics: []string{"a"},
		},
		"a topic that is a source with the flag": {
			spec: `{"input":{"topics":["a"],"sourceSpecs":{"a":{"isRegexPattern":true}}}}`, patterns: []string{"a"},
		},
		"only the first topic of a Go function": {
			spec:   `{"golang":{"go":"main"},"input":{"topics":["z","a"],"sourceSpecs":{"b":{}},"topicPattern":"x.*"}}`,
			topics: []string{"z"},
		},
		"a Go function without topics": {
			spec: `{"golang":{},"input":{"sourceSpecs":{"b":{}}}}`, refused: "set spec.input.topics",
		},
		"no input at all": {
			kind: KindSink, spec: `{}`,
			refused: "sink public/default/f has no input topics, so it has no backlog: list them in spec.input.topics",
		},
		"an empty name": {spec: `{"input":{"topics":[""]}}`, refused: "list them in spec.input.topics"},
		"a Function that reads through a source": {
			spec: `{"input":{"topics":["a"]},"sourceConfig":{"className":"org.Kafka"}}`, refused: "reads from org.Kafka",
		},
		"a Function with a source that names it": {
			spec:    `{"input":{"topics":["a"]},"sourceConfig":{"sourceType":"x","configs":{"className":"org.Kafka"}}}`,
			refused: "reads from org.Kafka",
		},
		"a Function with settings of its source's type": {
			spec: `{"input":{"topics":["a"]},"sourceConfig":{"sourceType":"x"}}`, topics: []string{"a"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kind := KindFunction
			if test.kind != "" {
				kind = test.kind
			}
			f := decodeMesh(t, kind, "f", test.spec)
			_, _, err := f.Subscription()
			if test.refused != "" {
				require.ErrorContains(t, err, test.refused)
				return
			}
			require.NoError(t, err)
			var topics, patterns []string
			for _, text := range slices.Sorted(maps.Keys(f.Inputs)) {
				if f.Inputs[text].IsPattern {
					patterns = append(patterns, text)
				} else {
					topics = append(topics, text)
				}
			}
			require.Equal(t, test.topics, topics)
			require.Equal(t, test.patterns, patterns)
		})
	}
}

func TestShortAndCompleteNamesAreOneTopic(t *testing.T) {
	f := decodeMesh(
		t,
		KindFunction,
		"f",
		`{"input":{"topics":["a"],"sourceSpecs":{"persistent://public/default/a":{},"t/n/b":{}}}}`,
	)
	subscription, _, err := f.Subscription()
	require.NoError(t, err)
	require.Equal(t, []string{"persistent://public/default/a", "persistent://t/n/b"}, subscription.Topics)
}

func TestTheSubscriptionOfAMeshObject(t *testing.T) {
	const byDefault = "public/default/object"
	tests := map[string]struct {
		kind         Kind
		spec         string
		name         string
		subscription backlog.SubscriptionType
	}{
		"all by default": {spec: `"input":{"topics":["a"]}`, name: byDefault, subscription: backlog.Shared},
		"by its own fields": {
			spec:         `"tenant":"t","namespace":"n","name":"r","input":{"topics":["a"]}`,
			name:         "t/n/r",
			subscription: backlog.Shared,
		},
		"by name": {
			spec:         `"tenant":"t","subscriptionName":"mine","input":{"topics":["a"]}`,
			name:         "mine",
			subscription: backlog.Shared,
		},
		"a Sink": {
			kind:         KindSink,
			spec:         `"name":"s","retainOrdering":true,"input":{"topics":["a"]}`,
			name:         "public/default/s",
			subscription: backlog.Failover,
		},
		"both orders": {
			spec:         `"retainOrdering":true,"retainKeyOrdering":true,"input":{"topics":["a"]}`,
			name:         byDefault,
			subscription: backlog.Failover,
		},
		"effectively once by key": {
			spec: `"processingGuarantee":"effectively_once","retainKeyOrdering":true,"input":{"topics":["a"]}`, name: byDefault,
			subscription: backlog.Failover,
		},
		"by key": {
			spec:         `"retainKeyOrdering":true,"processingGuarantee":"manual","input":{"topics":["a"]}`,
			name:         byDefault,
			subscription: backlog.KeyShared,
		},
		"Go without the order": {
			spec:         `"golang":{},"retainOrdering":true,"input":{"topics":["a"]}`,
			name:         byDefault,
			subscription: backlog.Shared,
		},
		"another runtime's properties are metadata": {
			spec:         `"genericRuntime":{},"input":{"sourceSpecs":{"a":{"consumerProperties":{"subscriptionName":"mine"}}}}`,
			name:         byDefault,
			subscription: backlog.Shared,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kind := KindFunction
			if test.kind != "" {
				kind = test.kind
			}
			subscription, subscriptionType, err := decodeMesh(t, kind, "object", `{`+test.spec+`}`).Subscription()
			require.NoError(t, err)
			require.Equal(t, test.name, subscription.Name)
			require.Equal(t, test.subscription, subscriptionType)
		})
	}
}

func TestOnlyManualWindowsNeverAcknowledge(t *testing.T) {
	tests := map[string]struct {
		spec  string
		never bool
	}{
		"no window": {`{"processingGuarantee":"manual"}`, false},
		"acknowledged on receipt": {
			`{"processingGuarantee":"atleast_once","windowConfig":{"windowLengthCount":10}}`,
			false,
		},
		"acknowledged by default": {`{"windowConfig":{}}`, false},
		"acknowledged by the window": {
			`{"processingGuarantee":"manual","windowConfig":{"processingGuarantees":"ATLEAST_ONCE"}}`,
			false,
		},
		"never acknowledged": {
			`{"processingGuarantee":"manual","windowConfig":{"windowLengthCount":10}}`,
			true,
		},
		"never acknowledged, the window null": {
			`{"processingGuarantee":"manual","windowConfig":{"processingGuarantees":null}}`,
			true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.never, decodeMesh(t, KindFunction, "f", test.spec).NeverAcknowledges)
		})
	}
}

func FuzzMeshSpec(f *testing.F) {
	f.Add(`{"replicas":3,"maxReplicas":5,"input":{"topics":["a"]}}`)
	f.Add(`{"golang":null,"input":null}`)
	f.Add(`{"input":{"sourceSpecs":{"a":null,"b":{"isRegexPattern":true}}}}`)
	f.Add(`{"batchSourceConfig":{},"sourceConfig":{"className":"x"}}`)
	f.Add(`{"input":{"topicPattern":"(","sourceSpecs":{"a":{"consumerProperties":{"subscriptionName":"x"}}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var s MeshSpec
		if json.Unmarshal([]byte(text), &s) != nil {
			t.Skip("not a spec")
		}
		for _, kind := range []Kind{KindFunction, KindSink, KindSource} {
			checkSubscription(t, s.Function(kind, "object"))
		}
	})
}

// checkSubscription fails for a subscription that no consumer can have.
func checkSubscription(t *testing.T, f Function) {
	t.Helper()
	subscription, kind, err := f.Subscription()
	if err != nil {
		require.NotEmpty(t, err.Error())
		require.Zero(t, subscription)
		return
	}
	require.NotEmpty(t, subscription.Name)
	require.NotEmpty(t, kind)
	require.NotEmpty(t, slices.Concat(subscription.Topics, subscription.Patterns), "topics, or why there are none")
	require.True(t, slices.IsSorted(subscription.Topics) && slices.IsSorted(subscription.Patterns))
	require.NotContains(t, subscription.Topics, "")
}
