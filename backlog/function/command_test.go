// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// recordedCommands are the scripts of StatefulSets that the function worker of Pulsar 4.0.8 created for each kind of
// function, by the function's name.
func recordedCommands(t testing.TB) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/4.0.8-commands.json")
	require.NoError(t, err)
	var commands map[string]string
	require.NoError(t, json.Unmarshal(text, &commands))
	return commands
}

func TestTheCommandsOfAWorkersStatefulSets(t *testing.T) {
	in := func(topic string) []string { return []string{"persistent://public/default/" + topic} }
	tests := map[string]expected{
		"pf-public-default-resize": {name: "public/default/resize", kind: backlog.Shared, topics: in("resize-in")},
		"pf-public-my-space-cropit-6c8db9d4": {
			name: "it's mine", kind: backlog.Failover, topics: append(in("a"), in("b")...),
		},
		"pf-public-default-patterned": {
			name: "public/default/patterned", kind: backlog.KeyShared, topics: in("literal"), patterns: in("rx-.*"),
		},
		"pf-public-default-drain": {name: "mine", kind: backlog.KeyShared, topics: in("sink-in")},
		"pf-public-default-tasks": {
			name: "BatchSourceExecutor-public/default/tasks", kind: backlog.Shared, topics: in("tasks-intermediate"),
		},
		"pf-public-default-snake":  {name: "public/default/snake", kind: backlog.Shared, topics: in("snake-in")},
		"pf-public-default-gopher": {name: "public/default/gopher", kind: backlog.Failover, topics: in("gopher-in")},
		"pf-public-default-job":    {name: "public/default/job", kind: backlog.Shared, topics: in("j-in")},
		"pf-public-default-silent": {
			refused: "source public/default/silent brings data into Pulsar and consumes nothing there",
		},
	}
	recorded := recordedCommands(t)
	require.Len(t, tests, len(recorded), "all that were recorded")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := DecodeCommand([]string{"sh", "-c", recorded[name]})
			require.NoError(t, err)
			require.True(t, f.RunsAs(name))
			test.check(t, f)
		})
	}
}

func TestCommandsThatAreNoInstances(t *testing.T) {
	tests := map[string]struct {
		command []string
		problem string
	}{
		"a database":         {[]string{"postgres", "-D", "/data"}, "do not run a Pulsar instance"},
		"incomplete details": {[]string{"sh", "-c", "java --function_details '{'"}, "reading --function_details"},
		"a quote never ends": {
			[]string{"sh", "-c", "java --function_details '{"},
			"a quotation mark in its command is never closed",
		},
		"empty details": {[]string{"sh", "-c", "java --function_details '{}'"}, "has no tenant, namespace or name"},
		"a Go instance without details": {
			[]string{"./main", "-instance-conf", `{"tenant":"a","nameSpace":"b","name":"c"}`},
			"-instance-conf has no functionDetails",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeCommand(test.command)
			require.ErrorContains(t, err, test.problem)
		})
	}
}

func FuzzDecodeCommand(f *testing.F) {
	for name, script := range recordedCommands(f) {
		f.Add(script, name)
	}
	f.Fuzz(func(t *testing.T, script, name string) {
		function, err := DecodeCommand([]string{"sh", "-c", script})
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.NotEmpty(t, function.Tenant)
		function.RunsAs(name)
		own := StatefulSetName(function.Tenant, function.Namespace, function.Name)
		require.True(t, function.RunsAs(own))
		require.NotContains(t, own, "_")
		checkSubscription(t, function)
	})
}
