// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

const least = `apiVersion: bench.pulsar-autoscaler.io/v1alpha1
kind: Scenario
metadata: {name: step}
load: {duration: 1m, constant: {rate: 10}}
function: {serviceTime: 20ms}
contenders:
- {name: ours, policy: {}}
- {name: keda, kedaPulsar: {}}
- {name: cpu, cpu: {}}
- {name: fixed, fixed: {replicas: 4}}
`

func TestDefaultsAreSet(t *testing.T) {
	s, err := scenario.Decode(strings.NewReader(least))
	require.NoError(t, err)
	require.Equal(t, time.Minute, s.LatencyObjective.Duration)
	require.Equal(t, time.Minute, s.WatchAfter.Duration)
	require.Equal(t, int32(1), *s.MinReplicas)
	require.Equal(t, int32(10), s.MaxReplicas)
	require.Equal(t, scenario.InTurn, s.Order)
	require.Equal(t, "HPA", s.Contenders[0].Policy.Actuator)
	require.Equal(t, int64(10), s.Contenders[1].KEDAPulsar.Threshold)
	require.Equal(t, int32(80), s.Contenders[2].CPU.Percentage)
	require.Equal(t, "public/default", s.Pulsar.Namespace)
	require.True(t, s.NeedsKEDA())
}

func TestDecodeSaysWhatToChange(t *testing.T) {
	for name, test := range map[string]struct{ old, new, want string }{
		"an unknown key":            {"metadata:", "metadat:", `unknown field "metadat"`},
		"another kind":              {"kind: Scenario", "kind: Policy", "they must be"},
		"a name that is none":       {"name: step", "name: Step", "metadata.name is"},
		"no service time":           {"{serviceTime: 20ms}", "{}", "function.serviceTime is 0s"},
		"half a millisecond":        {"20ms", "20.5ms", "whole milliseconds"},
		"half a second of cooldown": {"function:", "cooldownPeriod: 500ms\nfunction:", "cooldownPeriod is 500ms"},
		"a cooldown of 1.5 seconds": {"function:", "cooldownPeriod: 1500ms\nfunction:", "whole seconds"},
		"a start before the pod":    {"function:", "local: {startTime: -1s}\nfunction:", "local.startTime is -1s"},
		"two kinds":                 {"policy: {}", "policy: {}, cpu: {}", "it has 2 kinds"},
		"no kind":                   {"ours, policy: {}", "ours", "it has 0 kinds"},
		"a name twice":              {"name: keda", "name: ours", "a second time"},
		"an unknown actuator":       {"policy: {}", "policy: {actuator: VPA}", "it must be HPA or KEDA"},
		"too many fixed":            {"replicas: 4", "replicas: 11", "from 1 to maxReplicas, 10"},
		"no room for replicas":      {"function:", "minReplicas: 11\nfunction:", "from 0 to maxReplicas"},
		"zero replicas and CPU":     {"function:", "minReplicas: 0\nfunction:", "needs at least 1"},
		"a ratio above one":         {"function:", "limits: {maxLateRatio: 1.5}\nfunction:", "from 0 to 1"},
		"an unknown order":          {"function:", "order: Mixed\nfunction:", "it must be InTurn or SideBySide"},
		"a service URL for HTTP":    {"function:", "pulsar: {serviceURL: 'http://a:1'}\nfunction:", "pulsar.serviceURL is"},
		"a namespace alone":         {"function:", "pulsar: {namespace: a}\nfunction:", "tenant/namespace"},
		"a size that is none":       {"20ms}", "20ms, cpu: lots}", "function.cpu is"},
		"payloads without room":     {"function:", "messages: {bytes: 3}\nfunction:", "messages.bytes is 3"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scenario.Decode(strings.NewReader(strings.Replace(least, test.old, test.new, 1)))
			require.ErrorContains(t, err, test.want)
		})
	}
	_, err := scenario.Decode(strings.NewReader(strings.Repeat("#", 2<<20)))
	require.ErrorContains(t, err, "larger than 1 MiB")
}

func FuzzDecode(f *testing.F) {
	f.Add(least)
	f.Add("kind: [")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := scenario.Decode(strings.NewReader(text))
		if err == nil && (len(s.Contenders) == 0 || s.MaxReplicas < *s.MinReplicas) {
			t.Fatalf("%q is %+v", text, s)
		}
	})
}
