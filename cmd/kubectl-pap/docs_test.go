// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/history"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/picture"
)

var update = flag.Bool("update", false, "write docs/cli.md, and the output in docs/simulate.md")

// The page has a command and its output. The test runs the command.
func TestThePageShowsTheRealOutput(t *testing.T) {
	const page = "../../docs/simulate.md"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), "\n$ kubectl pap ")
	require.True(t, found, "the page has no example")
	block, after, found := strings.Cut(rest, "```")
	require.True(t, found)
	shown, output, found := strings.Cut(block, "0.05\n")
	require.True(t, found, "the command ends with the cost")
	args := strings.Fields(strings.ReplaceAll(shown+"0.05", "\\\n", ""))
	for i := range args {
		args[i] = strings.Replace(args[i], "examples/", "../../examples/", 1)
	}
	html := filepath.Join(t.TempDir(), "simulate.html")
	out, err := kubectlPap(t, "", append(args, "--html", html)...)
	require.NoError(t, err)
	drawn, err := os.ReadFile(html)
	require.NoError(t, err)
	picture.Shows(t, "../../docs/page.png", drawn)
	if *update {
		text := before + "\n$ kubectl pap " + shown + "0.05\n" + out + "```" + after
		require.NoError(t, os.WriteFile(page, []byte(text), 0o600))
		return
	}
	require.Equal(t, output, out, "update it with -update")
}

func TestThePageNamesAllSeries(t *testing.T) {
	text, err := os.ReadFile("../../docs/simulate.md")
	require.NoError(t, err)
	for _, name := range history.Names() {
		if name != "pulsar_autoscaler_policy_capacity_uncertainty_ratio" { // in addition to the capacity itself
			require.Contains(t, string(text), name)
		}
	}
}

const cliPageHead = `# kubectl pap

The commands of the plugin, as ` + "`--help`" + ` shows them. [Install the
plugin](simulate.md#install-the-plugin) first. This page is written by ` + "`go test ./cmd/kubectl-pap -update`" + `.

| command | |
|---|---|
`

// commands are those that users call.
func commands(parent *cobra.Command) (all []*cobra.Command) {
	for _, command := range parent.Commands() {
		if command.Runnable() && !command.Hidden {
			all = append(all, command)
		}
		all = append(all, commands(command)...)
	}
	return all
}

func TestTheCLIPageHasTheHelpOfAllCommands(t *testing.T) {
	const page = "../../docs/cli.md"
	head, text := cliPageHead, ""
	for _, command := range commands(newRoot(genericiooptions.NewTestIOStreamsDiscard())) {
		path := command.CommandPath()
		help, err := kubectlPap(t, "", append(strings.Fields(path)[2:], "--help")...)
		require.NoError(t, err)
		require.NotEmpty(t, command.Example, "%s has no example", path)
		head += "| [`" + path + "`](#" + strings.ReplaceAll(path, " ", "-") + ") | " + command.Short + " |\n"
		text += "\n## " + path + "\n\n```text\n" + strings.TrimSpace(help) + "\n```\n"
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(head+text), 0o600))
	}
	written, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, string(written), head+text, "update it with -update")
}
