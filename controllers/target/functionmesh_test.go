// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

func TestDecodeWorkloadRejectsWrongTypes(t *testing.T) {
	for name, object := range map[string]map[string]any{
		"replicas are a text": {"spec": map[string]any{"replicas": "three"}},
		"topics are a text":   {"spec": map[string]any{"input": map[string]any{"topics": "a,b"}}},
		"the spec is a list":  {"spec": []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			object["kind"] = cluster.KindFunction
			require.Error(t, Decode(&unstructured.Unstructured{Object: object}).Invalid())
		})
	}
}

func FuzzDecodeWorkload(f *testing.F) {
	f.Add(`{"metadata":{"name":"f","namespace":"n"},"spec":{"replicas":3,"maxReplicas":5,"input":{"topics":["a"]}}}`)
	f.Add(
		`{"metadata":{"ownerReferences":[{"controller":true,"kind":"FunctionMesh"}]},"spec":{"golang":null,"input":null}}`,
	)
	f.Add(`{"spec":{"input":{"sourceSpecs":{"a":null,"b":{"isRegexPattern":1}}}}}`)
	f.Add(`{"spec":{"batchSourceConfig":{},"sourceConfig":{"className":"x"}}}`)
	f.Add(`{"spec":{"input":{"topicPattern":"(","sourceSpecs":{"a":{"consumerProperties":{"subscriptionName":"x"}}}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil {
			t.Skip("not an object")
		}
		for _, kind := range cluster.WorkloadKinds() {
			u := &unstructured.Unstructured{Object: object}
			u.SetKind(kind)
			decoded := Decode(u)
			if decoded.Invalid() != nil {
				continue
			}
			subscription, subscriptionType, err := decoded.function().Subscription()
			if err != nil {
				continue
			}
			require.NotEmpty(t, slices.Concat(subscription.Topics, subscription.Patterns), "topics, or why there are none")
			require.NotEmpty(t, subscription.Name)
			require.NotEmpty(t, subscriptionType)
		}
	})
}
