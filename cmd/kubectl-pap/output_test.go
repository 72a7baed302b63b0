// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// names are the commands of users without "kubectl pap".
func names() (all []string) {
	for _, command := range commands(newRoot(genericiooptions.NewTestIOStreamsDiscard())) {
		all = append(all, strings.TrimPrefix(command.CommandPath(), "kubectl pap "))
	}
	return all
}

func TestCommandsShareTheFlagsOfKubectl(t *testing.T) {
	const list = "-A -n -o --context"
	want := map[string]string{
		"top": list, "report": list, "migrate": list,
		"explain": "-n -o --context", "check": "-n -o --context", "plan": "-n -o --context", "bench run": "-n -o --context",
		"simulate":    "-n -o",     // it reads no cluster
		"bench clean": "--context", // it lists namespaces, or gets them as arguments
	}
	forms := map[string]string{"top": "wide, json, yaml", "report": "json, yaml, csv, html", "migrate": "yaml, json"}
	got := map[string]string{}
	for _, command := range commands(newRoot(genericiooptions.NewTestIOStreamsDiscard())) {
		var found []string
		for _, name := range []string{"all-namespaces", "namespace", "output", "context"} {
			if f := command.Flags().Lookup(name); f != nil && f.Shorthand != "" {
				found = append(found, "-"+f.Shorthand)
			} else if f != nil {
				found = append(found, "--"+f.Name)
			}
		}
		got[strings.TrimPrefix(command.CommandPath(), "kubectl pap ")] = strings.Join(found, " ")
		if output := command.Flags().Lookup("output"); output != nil {
			require.NoError(t, output.Value.Set(formJSON), command.Name())
			require.NoError(t, output.Value.Set(formYAML), command.Name())
			require.EqualError(t, command.Flags().Set("output", "xml"), `invalid argument "xml" for "-o, --output" flag: `+
				"it must be one of "+cmp.Or(forms[command.Name()], "json, yaml")+", or empty", command.Name())
		}
	}
	require.Equal(t, want, got)
}

// invocations run commands on servers of their own. A name begins with that of the command.
func invocations(t *testing.T) map[string][]string {
	t.Helper()
	policies := append(fleetPolicies(), troubledPolicy())
	policies[len(policies)-1].Name = "troubled"
	server, recording := newAPIServer(t, policies...), newPrometheus(t, map[string]string{
		"publish_rate": "100", "capacity_messages_per_second": "50", "spec_replicas": "3",
	})
	conflict := "HorizontalPodAutoscaler by-hand scales Function thumbs: delete it, or set conflictPolicy to TakeOver"
	checks := newAPIServer(t, judgedPolicy(setCondition("Ready", "False", "ConflictingAutoscaler", conflict),
		setCondition("ScalingLimited", "True", "ExternalLimit", "more than 4 replicas process no more messages")))
	on := func(url string, args ...string) []string { return append(args, "-n", "media", "--server", url) }
	return map[string][]string{
		"top":                  on(server.url, "top"),
		"explain":              on(server.url, "explain", "troubled"),
		"explain without data": on(server.url, "explain", "thumbs"),
		"explain at a time": on(server.url, "explain", "resize", "--at", "2026-11-21T12:00:00Z", "--prometheus",
			recording),
		"check":         on(checks.url, "check", "resize"),
		"check install": on(installed(t).url, "check", "--install"),
		"plan": on(server.url, "plan", "resize", "--prometheus", recording, "--since", "1h", "--until",
			"2026-11-27T00:00:00Z", "--capacity", "40-60", "--cost-per-replica-hour", "12.5"),
		"report": {
			"report", "-A", "--prometheus", reported(t), "--until", "2026-11-27T00:10:00Z", "--cost-per-replica-hour", "0.5",
		},
		"simulate": {
			"simulate", "--trace", traceFile(t), "--capacity", "40-60", "--cost-per-replica-hour", "12.5",
		},
	}
}

func TestTheTextOfEachCommandFitsIn80Columns(t *testing.T) {
	texts := map[string]string{}
	for name, args := range invocations(t) {
		texts[name], _ = kubectlPap(t, "", args...) // an error is not in the text
	}
	for name, file := range map[string]string{
		"migrate":                "testdata/migrate.yaml",
		"report of a month":      "../../bench/outcome/testdata/report.txt",
		"plan of an hour":        "../../bench/sim/compare/testdata/curve.txt",
		"simulate a hill":        "../../bench/sim/compare/testdata/hill.txt",
		"bench run of a pattern": "../../bench/run/testdata/table.txt",
	} {
		text, err := os.ReadFile(filepath.FromSlash(file))
		require.NoError(t, err)
		texts[name] = string(text)
	}
	var result run.Result
	text, err := os.ReadFile(filepath.FromSlash("../../bench/run/testdata/result.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &result))
	result.Contenders[0].Name = "pulsar-autoscaler-of-a-policy"
	result.Contenders = slices.Repeat(result.Contenders, 3)
	texts["bench run of six contenders"] = result.Text(defaultWidth)
	texts["bench clean"], err = kubectlPap(t, "", "bench", "clean", "--server", withRuns(t).url)
	require.NoError(t, err)
	rows := topRows(fleetPolicies())
	texts["top on a terminal"] = topTable{namespaces: true}.text(rows, defaultWidth, fixture.Noon())
	s := &screen{failed: errors.New("Get https://10.0.0.1: " + strings.Repeat("refused ", 30))}
	s.remember(rows)
	texts["top --watch"] = s.text(rows, defaultWidth, 8, fixture.Noon())
	kube := fakeCluster(t, migrateFixtures(t)...)
	texts["migrate --apply"], err = migrateStep(t, kube, "", true)
	require.NoError(t, err)
	setDecision(t, kube, "billing")
	texts["migrate --apply again"], _ = migrateStep(t, kube, "", true)
	var question bytes.Buffer
	_, err = confirmed(bufio.NewReader(strings.NewReader("")), &question, "Create AutoscalingPolicy "+
		"media/thumbs in mode Recommend, which changes no replicas, and delete it after the check?")
	require.NoError(t, err)
	texts["check asks"] = question.String()

	for name, text := range texts {
		if name != "top" { // for programs it is not cut
			requireNarrow(t, name, text)
		}
	}
	for _, name := range names() {
		require.True(t, slices.ContainsFunc(slices.Sorted(maps.Keys(texts)), func(key string) bool {
			return key == name || strings.HasPrefix(key, name+" ")
		}), "%s has no text here", name)
	}
}

// requireNarrow requires lines of 80 columns, without colours. Commands to paste are not wrapped, and a long word, such
// as a query, has a line of its own.
func requireNarrow(t *testing.T, name, text string) {
	t.Helper()
	require.NotEmpty(t, text, name)
	require.NotContains(t, text, "\x1b", name)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		isCommand := strings.HasPrefix(strings.TrimLeft(line, "# "), "kubectl ")
		if isCommand || len(strings.Fields(line)) == 1 {
			continue
		}
		require.LessOrEqual(t, utf8.RuneCountInString(line), 80, "%s: %s", name, line)
	}
}

func TestJSONAndYAMLAreOneValue(t *testing.T) {
	for name, args := range invocations(t) {
		t.Run(name, func(t *testing.T) {
			written, _ := kubectlPap(t, "", append(args, "-o", "json")...) // check has the exit code of its result
			require.True(t, json.Valid([]byte(written)), written)
			same, _ := kubectlPap(t, "", append(args, "-o", "yaml")...)
			converted, err := yaml.YAMLToJSON([]byte(same))
			require.NoError(t, err)
			require.JSONEq(t, written, string(converted))
			var value any
			require.NoError(t, json.Unmarshal([]byte(written), &value))
			requireLowerCamel(t, value)
		})
	}
}

// requireLowerCamel requires that programs can address each key as a name.
func requireLowerCamel(t *testing.T, value any) {
	t.Helper()
	switch value := value.(type) {
	case map[string]any:
		for key, one := range value {
			require.Regexp(t, `^[a-z][A-Za-z0-9]*$`, key)
			requireLowerCamel(t, one)
		}
	case []any:
		for _, one := range value {
			requireLowerCamel(t, one)
		}
	}
}
