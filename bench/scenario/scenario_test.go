// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"os"
	"path/filepath"
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
		"an unknown key": {
			"metadata:", "metadat:",
			`unknown field "metadat": the fields there are apiVersion, kind, metadata, pulsar,`,
		},
		"an unknown key of a list": {
			"policy: {}", "policy: {polling: 2s}",
			`unknown field "contenders[0].policy.polling": the fields there are actuator`,
		},
		"a key in another case": {
			"policy: {}", "policy: {Actuator: KEDA}",
			`unknown field "contenders[0].policy.Actuator"`,
		},
		"a key that is empty": {"20ms}", "20ms}\nmessages: {'': 1}", `unknown field "messages."`},
		"a duration without a unit": {
			"20ms", "20",
			"function.serviceTime is 20: it must be a duration with its unit, such as",
		},
		"a duration that is none": {"20ms", "fast", `function.serviceTime is "fast": it must be a duration`},
		"a rate with its unit": {
			"rate: 10", "rate: 10/s",
			`load.constant.rate is "10/s": it must be a number of messages per second`,
		},
		"a part of a byte": {
			"20ms}", "20ms}\nmessages: {bytes: 25.5}",
			"messages.bytes is 25.5: it must be a whole number of bytes",
		},
		"a number for a name": {"name: step", "name: 7", "metadata.name is 7: it must be text"},
		"a list of one": {
			"{duration: 1m, constant: {rate: 10}}", "[]",
			"load is []: it must be an object with the fields duration,",
		},
		"an outage before the load": {
			"function:", "local: {outage: {at: -1s, for: 1m}}\nfunction:",
			"local.outage.at is -1s: it must be from 0s to 24h0m0s",
		},
		"an outage without an end": {
			"function:", "local: {outage: {for: 25h}}\nfunction:",
			"local.outage.for is 25h0m0s: it must be from 0s to 24h0m0s",
		},
		"an outage without a length": {
			"function:", "local: {outage: {at: 1m}}\nfunction:",
			"local.outage.for is missing: set it, or remove local.outage",
		},
		"one that is no list": {
			"function:", "local: {adapterFlags: a}\nfunction:",
			`local.adapterFlags is "a": it must be a list`,
		},
		"another kind":              {"kind: Scenario", "kind: Policy", "they must be"},
		"a name that is none":       {"name: step", "name: Step", "metadata.name is"},
		"a service time of days":    {"20ms", "48h", "function.serviceTime is 48h0m0s"},
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
		"a service URL for HTTP": {
			"function:", "pulsar: {serviceURL: 'http://a:1'}\nfunction:",
			"pulsar.serviceURL is",
		},
		"a namespace alone":     {"function:", "pulsar: {namespace: a}\nfunction:", "tenant/namespace"},
		"a Secret alone":        {"function:", "pulsar: {authSecret: a}\nfunction:", "pulsar.authSecret is \"a\""},
		"an unknown kind":       {"20ms}", "20ms, kind: Job}", "function.kind is \"Job\": it must be Function or"},
		"eleven stages":         {"20ms}", "20ms, stages: 11}", "function.stages is 11: it must be from 1 to 10"},
		"an unknown forecast":   {"policy: {}", "policy: {forecast: On}", "policy.forecast is true: it must be text"},
		"a forecast of another": {"policy: {}", "policy: {forecast: KEDA}", "policy.forecast is \"KEDA\": it must be 'Auto'"},
		"a queue below zero":    {"20ms}", "20ms, receiverQueueSize: -1}", "function.receiverQueueSize is -1: it must be"},
		"a size that is none":   {"20ms}", "20ms, cpu: lots}", "function.cpu is"},
		"payloads without room": {"function:", "messages: {bytes: 3}\nfunction:", "messages.bytes is 3"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scenario.Decode(strings.NewReader(strings.Replace(least, test.old, test.new, 1)))
			require.ErrorContains(t, err, test.want)
		})
	}
	_, err := scenario.Decode(strings.NewReader(strings.NewReplacer("rate:", "rat:", "20ms", "20").Replace(least)))
	require.ErrorContains(t, err, "rat")
	require.ErrorContains(t, err, "function.serviceTime is 20", "all mistakes at once")
	_, err = scenario.Decode(strings.NewReader(strings.Repeat("#", 2<<20)))
	require.ErrorContains(t, err, "larger than 1 MiB")
}

func TestScenarioForATargetHasALoadAlone(t *testing.T) {
	head, _, _ := strings.Cut(least, "function:")
	s, err := scenario.Decode(strings.NewReader(head + "limits: {maxLateRatio: 0.01}\n"))
	require.NoError(t, err)
	require.ErrorContains(t, s.CheckContenders(), "contenders is empty: it must have from 1 to 10 elements, unless --target")
	require.ErrorContains(t, s.CheckPulsar(), "pulsar.adminURL or pulsar.serviceURL is missing")

	s, err = scenario.Decode(strings.NewReader(strings.Replace(least, "{serviceTime: 20ms}", "{}", 1)))
	require.NoError(t, err)
	require.ErrorContains(t, s.CheckContenders(), "function.serviceTime is 0s: it must be from 1ms")
	require.ErrorContains(t, s.CheckFunction(), "function.image is missing: name an image with the example Function")
	require.NoError(t, s.CheckLocal())

	s, err = scenario.Decode(strings.NewReader(strings.Replace(least, "{service", "{kind: Deployment, service", 1)))
	require.NoError(t, err)
	require.ErrorContains(t, s.CheckFunction(), "function.image is missing: name the image of kubectl-pap")
	require.ErrorContains(t, s.CheckLocal(), "needs a cluster")
}

func TestAnOutageBeginsWhileReplicasAreWatched(t *testing.T) {
	dir := t.TempDir()
	recording := "time,rate\n0,10\n120,10\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "load.csv"), []byte(recording), 0o600))
	for name, test := range map[string]struct{ load, at, want string }{
		"with the load":              {"duration: 1m, constant: {rate: 10}", "0s", ""},
		"in the last second":         {"duration: 1m, constant: {rate: 10}", "1m29s", ""},
		"after all":                  {"duration: 1m, constant: {rate: 10}", "90s", "local.outage.at is 1m30s"},
		"within a recording":         {"replay: {file: load.csv}", "2m", ""},
		"long after a recorded load": {"replay: {file: load.csv}", "1h", "local.outage.at is 1h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer("duration: 1m, constant: {rate: 10}", test.load, "function:",
				"watchAfter: 30s\nlocal: {outage: {at: "+test.at+", for: 1m}}\nfunction:").Replace(least)
			path := filepath.Join(dir, "scenario.yaml")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			_, _, err := scenario.Open(path)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want+": it must be before the end of the load and of watchAfter, ")
		})
	}
}

func TestPodsNeedCredentialsOfTheirOwn(t *testing.T) {
	s, err := scenario.Decode(strings.NewReader(least))
	require.NoError(t, err)
	require.NoError(t, s.CheckCredentials(false))
	require.ErrorContains(t, s.CheckCredentials(true), "pulsar.authSecret is missing beside credentials for Pulsar")
	s.Pulsar.AuthSecret = "pulsar/bench"
	require.ErrorContains(t, s.CheckCredentials(true), "contender keda has kedaPulsar")
	s.Contenders = s.Contenders[:1]
	require.NoError(t, s.CheckCredentials(true))
}

func FuzzDecode(f *testing.F) {
	f.Add(least)
	f.Add("kind: [")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := scenario.Decode(strings.NewReader(text))
		if err == nil && (s.CheckContenders() == nil && len(s.Contenders) == 0 || s.MaxReplicas < *s.MinReplicas) {
			t.Fatalf("%q is %+v", text, s)
		}
	})
}
