// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

func decoded(t *testing.T, fields map[string]any) component {
	t.Helper()
	f := object(KindFunction)
	f.SetNamespace("prod")
	f.SetName("orders")
	f.Object["spec"] = fields
	c, err := decode(f)
	require.NoError(t, err)
	return c
}

func TestFunctionIsDecodedIntoAnInstance(t *testing.T) {
	f := Function("prod", "orders", FunctionConfig{
		Topics: []string{"in", "persistent://acme/eu/other"}, PulsarConfig: "pulsar", Replicas: 2, MaxReplicas: 9,
		ServiceTime: 20 * time.Millisecond, StartDelay: 3 * time.Second, ReceiverQueueSize: 10,
	})
	fields := f.Object["spec"].(map[string]any)
	fields["subscriptionName"], fields["retainKeyOrdering"] = "sub", true
	c, err := decode(f)
	require.NoError(t, err)
	in, err := c.instance(4)
	require.NoError(t, err)
	require.Equal(t, replica.Instance{
		Tenant: "public", Namespace: "default", Name: "orders", ID: 4,
		Topics:       []string{"persistent://acme/eu/other", "persistent://public/default/in"},
		Subscription: "sub", SubscriptionType: replica.KeyShared, ServiceTime: 20 * time.Millisecond,
		StartDelay: 3 * time.Second, ReceiverQueueSize: 10,
	}, in)
	require.EqualValues(t, 2, *c.spec.Replicas)
	require.EqualValues(t, 1, *c.spec.MinReplicas)
	require.EqualValues(t, 9, *c.spec.MaxReplicas)
	require.True(t, c.managed)
}

func TestDefaultsAreThoseOfTheWebhook(t *testing.T) {
	c := decoded(t, map[string]any{
		"tenant": "acme", "minReplicas": int64(2), "timeout": int64(1500), "input": map[string]any{"topics": []any{"in"}},
	})
	require.EqualValues(t, 2, *c.spec.Replicas)
	require.Nil(t, c.spec.MaxReplicas)
	in, err := c.instance(0)
	require.NoError(t, err)
	require.Equal(t, "acme/default/orders", in.Subscription)
	require.Equal(t, 1500*time.Millisecond, in.RedeliverAfter)
}

func TestTopicsAreTheUnionOfAllInputs(t *testing.T) {
	cases := map[string]struct {
		spec    map[string]any
		topics  []string
		pattern string
		err     string
	}{
		"merges the map and the list": {
			spec: map[string]any{"input": map[string]any{
				"topics":      []any{"a", "public/default/b"},
				"sourceSpecs": map[string]any{"a": map[string]any{}, "e": map[string]any{}},
			}},
			topics: []string{
				"persistent://public/default/a", "persistent://public/default/b", "persistent://public/default/e",
			},
		},
		"a pattern that is a source too is a topic": {
			spec: map[string]any{"input": map[string]any{
				"topicPattern": "a.b", "sourceSpecs": map[string]any{"a.b": map[string]any{}},
			}},
			topics: []string{"persistent://public/default/a.b"},
		},
		"a pattern stands for topics": {
			spec: map[string]any{"input": map[string]any{"topicPattern": "a.*"}}, pattern: "persistent://public/default/a.*",
		},
		"a pattern may be among the sources": {
			spec: map[string]any{"input": map[string]any{
				"sourceSpecs": map[string]any{"persistent://t/n/a.*": map[string]any{"isRegexPattern": true}},
			}},
			pattern: "persistent://t/n/a.*",
		},
		"rejects a pattern with a topic": {
			spec: map[string]any{"input": map[string]any{
				"topicPattern": "a.*",
				"topics":       []any{"b"},
			}}, err: "take one pattern, or topics by name",
		},
		"rejects two patterns": {
			spec: map[string]any{"input": map[string]any{
				"topicPattern": "a.*", "sourceSpecs": map[string]any{"b.*": map[string]any{"isRegexPattern": true}},
			}},
			err: "take one pattern, or topics by name",
		},
		"rejects no topic": {spec: map[string]any{}, err: "set spec.input.topics"},
		"rejects an unknown knob": {
			spec: map[string]any{
				"input":      map[string]any{"topics": []any{"a"}},
				"funcConfig": map[string]any{"serviceTime": int64(5)},
			},
			err: `unknown field "serviceTime"`,
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			in, err := decoded(t, test.spec).instance(0)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.topics, in.Topics)
			require.Equal(t, test.pattern, in.TopicPattern)
		})
	}
}

func TestSubscriptionTypeFollowsFunctionMesh(t *testing.T) {
	cases := map[string]struct {
		spec component
		want string
	}{
		"the default is shared": {component{}, replica.Shared},
		"manual is shared":      {component{spec: spec{ProcessingGuarantee: "manual"}}, replica.Shared},
		"effectively once is failover": {component{spec: spec{
			ProcessingGuarantee: "effectively_once",
			RetainKeyOrdering:   true,
		}}, replica.Failover},
		"ordering wins over key ordering": {
			component{spec: spec{RetainOrdering: true, RetainKeyOrdering: true}},
			replica.Failover,
		},
		"key ordering is by key":       {component{spec: spec{RetainKeyOrdering: true}}, replica.KeyShared},
		"at most once changes nothing": {component{spec: spec{ProcessingGuarantee: "atmost_once"}}, replica.Shared},
		"at least once with keys keeps it": {component{spec: spec{
			ProcessingGuarantee: "atleast_once",
			RetainKeyOrdering:   true,
		}}, replica.KeyShared},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, test.spec.subscriptionType()) })
	}
}

func TestDecodeRefusesAFieldOfTheWrongType(t *testing.T) {
	f := object(KindFunction)
	f.Object["spec"] = map[string]any{"replicas": "three"}
	_, err := decode(f)
	require.ErrorContains(t, err, "reading Function")
}

// FuzzDecode looks for a spec that crashes the decoder: the CRD keeps unknown fields.
func FuzzDecode(f *testing.F) {
	f.Add(`{"spec":{"replicas":2,"input":{"topics":["a"]},"funcConfig":{"startDelayMillis":3}}}`)
	f.Add(`{"spec":{"input":{"sourceSpecs":{"a":null}}}}`)
	f.Add(`{"spec":[]}`)
	f.Fuzz(func(t *testing.T, text string) {
		o := &unstructured.Unstructured{}
		if o.UnmarshalJSON(
			[]byte(`{"apiVersion":"compute.functionmesh.io/v1alpha1","kind":"Function",`+trimBrace(text))) != nil {
			return
		}
		c, err := decode(o)
		if err != nil {
			return
		}
		require.NotNil(t, c.spec.Replicas)
		in, err := c.instance(0)
		if err == nil {
			require.NotEqual(t, len(in.Topics) > 0, in.TopicPattern != "")
			require.NotEmpty(t, in.Subscription)
		}
	})
}

func trimBrace(text string) string {
	if text == "" {
		return text
	}
	return text[1:]
}

func TestCRDsHaveTheSubresourcesOfFunctionMesh(t *testing.T) {
	paths, err := filepath.Glob("crd/*.yaml")
	require.NoError(t, err)
	scalable := map[string]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		crd := &unstructured.Unstructured{}
		require.NoError(t, yaml.UnmarshalStrict(text, &crd.Object))
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		require.NoError(t, err)
		_, scale, err := unstructured.NestedMap(versions[0].(map[string]any), "subresources", "scale")
		require.NoError(t, err)
		scalable[crd.GetName()] = scale
	}
	require.Equal(t, map[string]bool{
		"functions." + Group: true, "sinks." + Group: true, "sources." + Group: true, "functionmeshes." + Group: false,
	}, scalable)
}
