// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// decodeMesh decodes the JSON of the spec of a mesh object.
func decodeMesh(t testing.TB, kind Kind, object, spec string) Function {
	t.Helper()
	var s MeshSpec
	require.NoError(t, json.Unmarshal([]byte(spec), &s))
	return s.Function(kind, object)
}

// decodeWorker decodes a worker's answer.
func decodeWorker(t testing.TB, kind Kind, answer string) Function {
	t.Helper()
	var c WorkerConfig
	require.NoError(t, json.Unmarshal([]byte(answer), &c))
	f, err := c.Function(kind)
	require.NoError(t, err)
	return f
}

// decodeJava decodes the details of a Java instance.
func decodeJava(t testing.TB, details string) Function {
	t.Helper()
	f, err := DecodeCommand([]string{"sh", "-c", "exec java -cp x --function_details '" + details + "' --port 9093"})
	require.NoError(t, err)
	return f
}

// identity begins the description of all functions below, and worker has the other fields of a worker's answer.
const (
	identity = `"tenant":"media","namespace":"images","name":"resize"`
	worker   = `"parallelism":2,"runtime":"JAVA",` + identity
)

// expected is the subscription of a description, or why there is none.
type expected struct {
	name             string
	kind             backlog.SubscriptionType
	topics, patterns []string
	refused          string
}

func TestAFunctionIsTheSameInAllDescriptions(t *testing.T) {
	const mine = `"consumerProperties":{"subscriptionName":"mine","subscriptionType":"Key_Shared"}`
	tests := map[string]struct {
		kind                  Kind
		mesh, command, worker string
		want                  Function
		expected              expected
	}{
		"shares a topic by default": {
			mesh:    `{` + identity + `,"input":{"topics":["in"]}}`,
			command: `{` + identity + `,"source":{"inputSpecs":{"in":{}}},"componentType":"FUNCTION"}`,
			worker:  `{` + worker + `,"processingGuarantees":"ATLEAST_ONCE","inputs":["in"],"inputSpecs":{"in":{}}}`,
			want:    Function{Runtime: Java, Inputs: map[string]Input{"in": {}}, SubscriptionType: backlog.Shared},
			expected: expected{
				name: "media/images/resize", kind: backlog.Shared, topics: []string{"persistent://public/default/in"},
			},
		},
		"follows topics and patterns in order": {
			mesh: `{` + identity + `,"subscriptionName":"ours","retainOrdering":true,
				"input":{"topics":["b","t/n/a"],"sourceSpecs":{"rx-.*":{"isRegexPattern":true}}}}`,
			command: `{` + identity + `,"source":{"subscriptionName":"ours","subscriptionType":"FAILOVER",
				"inputSpecs":{"b":{},"t/n/a":{},"rx-.*":{"isRegexPattern":true}}},"componentType":"FUNCTION"}`,
			worker: `{` + worker + `,"subName":"ours","retainOrdering":true,
				"inputSpecs":{"b":{},"t/n/a":{"regexPattern":false},"rx-.*":{"regexPattern":true}}}`,
			want: Function{
				Runtime: Java, Inputs: map[string]Input{"b": {}, "t/n/a": {}, "rx-.*": {IsPattern: true}},
				SubscriptionName: "ours", SubscriptionType: backlog.Failover,
			},
			expected: expected{
				name: "ours", kind: backlog.Failover, topics: []string{"persistent://public/default/b", "persistent://t/n/a"},
				patterns: []string{"persistent://public/default/rx-.*"},
			},
		},
		"is in order when it has to run effectively once": {
			mesh: `{` + identity + `,"processingGuarantee":"effectively_once","input":{"topics":["in"]}}`,
			command: `{` + identity + `,"processingGuarantees":"EFFECTIVELY_ONCE",
				"source":{"subscriptionType":"FAILOVER","inputSpecs":{"in":{}}},"componentType":"FUNCTION"}`,
			worker: `{` + worker + `,"processingGuarantees":"EFFECTIVELY_ONCE","inputSpecs":{"in":{}}}`,
			want:   Function{Runtime: Java, Inputs: map[string]Input{"in": {}}, SubscriptionType: backlog.Failover},
			expected: expected{
				name: "media/images/resize", kind: backlog.Failover, topics: []string{"persistent://public/default/in"},
			},
		},
		"is in order by key in Python, with properties": {
			mesh: `{` + identity + `,"python":{"py":"f.py"},"retainKeyOrdering":true,"input":{"sourceSpecs":{"in":{` + mine +
				`}}}}`,
			command: `{` + identity + `,"runtime":"PYTHON","source":{"subscriptionType":"KEY_SHARED","inputSpecs":{"in":{` + mine + `}}},
				"componentType":"FUNCTION"}`,
			worker: `{"parallelism":2,"runtime":"PYTHON",` + identity + `,"retainKeyOrdering":true,"inputSpecs":{"in":{` + mine +
				`}}}`,
			want: Function{
				Runtime:          Python,
				SubscriptionType: backlog.KeyShared,
				Inputs: map[string]Input{"in": {ConsumerProperties: map[string]string{
					"subscriptionName": "mine", "subscriptionType": "Key_Shared",
				}}},
			},
			expected: expected{
				name: "media/images/resize", kind: backlog.KeyShared, topics: []string{"persistent://public/default/in"},
			},
		},
		"shares a topic in Go": {
			mesh:    `{` + identity + `,"golang":{"go":"main"},"input":{"topics":["in"]}}`,
			command: `{` + identity + `,"runtime":"GO","source":{"inputSpecs":{"in":{}}},"componentType":"FUNCTION"}`,
			worker:  `{"parallelism":2,"runtime":"GO",` + identity + `,"inputSpecs":{"in":{}}}`,
			want:    Function{Runtime: Go, Inputs: map[string]Input{"in": {}}, SubscriptionType: backlog.Shared},
			expected: expected{
				name: "media/images/resize", kind: backlog.Shared, topics: []string{"persistent://public/default/in"},
			},
		},
		"is a sink with overriding consumer properties": {
			kind: KindSink,
			mesh: `{` + identity + `,"subscriptionName":"theirs","retainOrdering":true,"input":{"sourceSpecs":{"in":{` +
				mine + `}}}}`,
			command: `{` + identity +
				`,"source":{"subscriptionName":"theirs","subscriptionType":"FAILOVER","inputSpecs":{"in":{` + mine +
				`}}},"componentType":"SINK"}`,
			worker: `{"parallelism":2,` + identity + `,"sourceSubscriptionName":"theirs","retainOrdering":true,
				"inputSpecs":{"in":{` + mine + `}}}`,
			want: Function{
				Runtime: Java, SubscriptionName: "theirs", SubscriptionType: backlog.Failover, Inputs: map[string]Input{
					"in": {ConsumerProperties: map[string]string{"subscriptionName": "mine", "subscriptionType": "Key_Shared"}},
				},
			},
			expected: expected{name: "mine", kind: backlog.KeyShared, topics: []string{"persistent://public/default/in"}},
		},
		"has inputs that share no subscription": {
			mesh:    `{` + identity + `,"input":{"sourceSpecs":{"a":{` + mine + `},"b":{}}}}`,
			command: `{` + identity + `,"source":{"inputSpecs":{"a":{` + mine + `},"b":{}}},"componentType":"FUNCTION"}`,
			worker:  `{` + worker + `,"inputSpecs":{"a":{` + mine + `},"b":{}}}`,
			want: Function{Runtime: Java, SubscriptionType: backlog.Shared, Inputs: map[string]Input{
				"a": {ConsumerProperties: map[string]string{"subscriptionName": "mine", "subscriptionType": "Key_Shared"}}, "b": {},
			}},
			expected: expected{
				refused: "the inputs of function media/images/resize do not share one subscription: consumerProperties make b " +
					"subscribe as media/images/resize (Shared) and another as mine (Key_Shared): set subscriptionName and " +
					"subscriptionType alike " +
					"for all inputs",
			},
		},
		"has a pattern with syntax of Java only": {
			mesh: `{` + identity + `,"input":{"sourceSpecs":{"a(?=b).*":{"isRegexPattern":true}}}}`,
			command: `{` + identity +
				`,"source":{"inputSpecs":{"a(?=b).*":{"isRegexPattern":true}}},"componentType":"FUNCTION"}`,
			worker: `{` + worker + `,"inputSpecs":{"a(?=b).*":{"regexPattern":true}}}`,
			want: Function{
				Runtime:          Java,
				SubscriptionType: backlog.Shared,
				Inputs:           map[string]Input{"a(?=b).*": {IsPattern: true}},
			},
			expected: expected{
				refused: `reading the inputs of function media/images/resize: not supported: topic pattern "a(?=b).*": `,
			},
		},
		"is a window that never acknowledges": {
			mesh: `{` + identity +
				`,"processingGuarantee":"manual","windowConfig":{"windowLengthCount":10},"input":{"topics":["in"]}}`,
			command: `{` + identity + `,"processingGuarantees":"MANUAL","userConfig":"{\"__WINDOWCONFIGS__\":{\"windowLengthCount\":10}}",
				"source":{"inputSpecs":{"in":{}}},"componentType":"FUNCTION"}`,
			worker: `{` + worker +
				`,"processingGuarantees":"MANUAL","windowConfig":{"windowLengthCount":10},"inputSpecs":{"in":{}}}`,
			want: Function{
				Runtime:           Java,
				Inputs:            map[string]Input{"in": {}},
				SubscriptionType:  backlog.Shared,
				NeverAcknowledges: true,
			},
			expected: expected{
				name: "media/images/resize", kind: backlog.Shared, topics: []string{"persistent://public/default/in"},
			},
		},
		"is a window that acknowledges": {
			mesh: `{` + identity +
				`,"processingGuarantee":"manual","windowConfig":{"processingGuarantees":"ATLEAST_ONCE"},"input":{"topics":["in"]}}`,
			command: `{` + identity + `,"processingGuarantees":"MANUAL",
				"userConfig":"{\"__WINDOWCONFIGS__\":{\"processingGuarantees\":\"ATLEAST_ONCE\"}}",
				"source":{"inputSpecs":{"in":{}}},"componentType":"FUNCTION"}`,
			worker: `{` + worker +
				`,"processingGuarantees":"MANUAL","windowConfig":{"processingGuarantees":"ATLEAST_ONCE"},"inputSpecs":{"in":{}}}`,
			want: Function{Runtime: Java, Inputs: map[string]Input{"in": {}}, SubscriptionType: backlog.Shared},
			expected: expected{
				name: "media/images/resize", kind: backlog.Shared, topics: []string{"persistent://public/default/in"},
			},
		},
		"is a batch source, which consumes the tasks it found": {
			kind: KindSource,
			mesh: `{` + identity +
				`,"processingGuarantee":"effectively_once","batchSourceConfig":{"discoveryTriggererClassName":"a.B"}}`,
			command: `{` + identity + `,"source":{"className":"` + classBatchSource + `"},"componentType":"SOURCE"}`,
			worker:  `{"parallelism":2,` + identity + `,"batchSourceConfig":{"discoveryTriggererClassName":"a.B"}}`,
			want:    Function{Runtime: Java, SubscriptionType: backlog.Shared, Batch: true},
			expected: expected{
				name: "BatchSourceExecutor-media/images/resize", kind: backlog.Shared,
				topics: []string{"persistent://media/images/resize-intermediate"},
			},
		},
		"is a source, which has no input": {
			kind:    KindSource,
			mesh:    `{` + identity + `,"sourceConfig":{"className":7}}`,
			command: `{` + identity + `,"source":{"className":"org.Kafka"},"componentType":"SOURCE"}`,
			worker:  `{"parallelism":2,` + identity + `,"topicName":"out"}`,
			want:    Function{Runtime: Java, SubscriptionType: backlog.Shared},
			expected: expected{
				refused: "source media/images/resize brings data into Pulsar and consumes nothing there, so there is no backlog " +
					"to scale on",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := test.want
			want.Kind, want.Tenant, want.Namespace, want.Name = KindFunction, "media", "images", "resize"
			if test.kind != "" {
				want.Kind = test.kind
			}
			require.Equal(t, want, decodeMesh(t, want.Kind, "object", test.mesh), "Function Mesh")
			require.Equal(t, want, decodeJava(t, test.command), "command line")
			require.Equal(t, want, decodeWorker(t, want.Kind, test.worker), "worker")
			test.expected.check(t, want)
		})
	}
}

// check requires the subscription of the function.
func (e expected) check(t *testing.T, f Function) {
	t.Helper()
	subscription, kind, err := f.Subscription()
	if e.refused != "" {
		require.ErrorContains(t, err, e.refused)
		return
	}
	require.NoError(t, err)
	require.Equal(t, e.name, subscription.Name)
	require.Equal(t, e.kind, kind)
	require.Equal(t, strings.Join(e.topics, " "), strings.Join(subscription.Topics, " "))
	require.Equal(t, strings.Join(e.patterns, " "), strings.Join(subscription.Patterns, " "))
}

func TestAFunctionThatSkipsToTheLatestIsRefused(t *testing.T) {
	const in = identity + `,"input":{"topics":["in"]},"skipToLatest":`
	for name, test := range map[string]struct {
		f       Function
		refused bool
	}{
		"in Java":                   {decodeMesh(t, KindFunction, "f", `{`+in+`true}`), true},
		"in Java, off":              {decodeMesh(t, KindFunction, "f", `{`+in+`false}`), false},
		"in Python, which reads on": {decodeMesh(t, KindFunction, "f", `{`+in+`true,"python":{}}`), false},
		"in Go, which reads on":     {decodeMesh(t, KindFunction, "f", `{`+in+`true,"golang":{}}`), false},
		"in Java, of a worker": {
			decodeJava(t, `{`+identity+`,"source":{"skipToLatest":true,"inputSpecs":{"in":{}}}}`), true,
		},
		"in Python, of a worker": {
			decodeJava(t, `{`+identity+`,"runtime":"PYTHON","source":{"skipToLatest":true,"inputSpecs":{"in":{}}}}`), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := test.f.Subscription()
			if !test.refused {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "function media/images/resize has skipToLatest, with which each replica that starts "+
				"skips the messages that wait for all of them: remove it")
		})
	}
}

func TestTheOutputOfAWorkersFunction(t *testing.T) {
	require.Equal(t, "out",
		decodeJava(t, `{`+identity+`,"source":{"inputSpecs":{"in":{}}},"sink":{"topic":"out"}}`).Output, "command line")
	require.Equal(t, "out",
		decodeWorker(t, KindFunction, `{`+worker+`,"inputSpecs":{"in":{}},"output":"out"}`).Output, "worker")
}

func TestConsumerPropertiesDecideWhatJavaSubscribesAs(t *testing.T) {
	properties := func(keysAndValues ...string) Input {
		input := Input{ConsumerProperties: map[string]string{}}
		for i := 0; i < len(keysAndValues); i += 2 {
			input.ConsumerProperties[keysAndValues[i]] = keysAndValues[i+1]
		}
		return input
	}
	tests := map[string]struct {
		inputs   map[string]Input
		expected expected
	}{
		"all alike": {
			inputs: map[string]Input{
				"a": properties("subscriptionName", "mine"), "b": properties("subscriptionName", "mine", "receiverQueueSize", "10"),
			},
			expected: expected{
				name:   "mine",
				kind:   backlog.Shared,
				topics: []string{"persistent://public/default/a", "persistent://public/default/b"},
			},
		},
		"another name for one": {
			inputs: map[string]Input{"a": {}, "b": properties("subscriptionName", "mine")},
			expected: expected{
				refused: "consumerProperties make b subscribe as mine (Shared) and another as media/images/resize (Shared)",
			},
		},
		"another type for one": {
			inputs: map[string]Input{"a": {}, "b": properties("subscriptionType", "Failover")},
			expected: expected{refused: "consumerProperties make b subscribe as media/images/resize (Failover) and another as " +
				"media/images/resize (Shared)"},
		},
		"an unknown type": {
			inputs: map[string]Input{"a": properties("subscriptionType", "KEY_SHARED")},
			expected: expected{
				refused: `consumerProperties of input a of function media/images/resize have subscriptionType "KEY_SHARED", ` +
					`which Pulsar does not know: use Shared, Failover or Key_Shared`,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.expected.check(t, Function{
				Kind:             KindFunction,
				Tenant:           "media",
				Namespace:        "images",
				Name:             "resize",
				Runtime:          Java,
				SubscriptionType: backlog.Shared,
				Inputs:           test.inputs,
			})
		})
	}
}
