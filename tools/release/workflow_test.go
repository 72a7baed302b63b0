// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// workflow is what the test looks at of a workflow of GitHub.
type workflow struct {
	On          map[string]map[string][]string `yaml:"on"`
	Permissions map[string]string              `yaml:"permissions"`
	Jobs        map[string]struct {
		Permissions map[string]string `yaml:"permissions"`
		Steps       []struct {
			Uses string `yaml:"uses"`
			Run  string `yaml:"run"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

// TestTheWorkflowSignsWhatIsReleased reads the workflow: nothing runs it before there is a tag.
func TestTheWorkflowSignsWhatIsReleased(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "release.yaml"))
	require.NoError(t, err)
	var found workflow
	require.NoError(t, yaml.Unmarshal(text, &found))
	require.Equal(t, map[string]map[string][]string{"push": {"tags": {"v*"}}}, found.On, "no pull request may sign")
	require.Empty(t, found.Permissions)
	require.Len(t, found.Jobs, 1)
	job := found.Jobs["release"]
	require.Equal(t, map[string]string{
		"attestations": "write", "contents": "write", "id-token": "write", "packages": "write",
	}, job.Permissions)

	var script strings.Builder
	for _, step := range job.Steps {
		if step.Uses != "" {
			require.Regexp(t, `^[\w-]+/[\w-]+@(v\d+|[0-9a-f]{40})$`, step.Uses)
			script.WriteString(step.Uses + "\n")
			continue
		}
		require.NotContains(t, step.Run, "${{", "a shell reads variables: an expression could be a command")
		out, err := exec.CommandContext(t.Context(), "sh", "-n", "-c", step.Run).CombinedOutput()
		require.NoError(t, err, "%s", out)
		script.WriteString(step.Run + "\n")
	}
	rest := script.String()
	for _, next := range []string{
		"make release VERSION=", "skopeo copy --all --preserve-digests ", "cosign sign --yes ", "cosign sign-blob --yes ",
		"actions/attest-build-provenance@", "actions/attest-build-provenance@", "gh release create ",
	} {
		_, after, ok := strings.Cut(rest, next)
		require.True(t, ok, "%q, in this order", next)
		rest = after
	}
	programs, err := release{root: root}.programs()
	require.NoError(t, err)
	loop := regexp.MustCompile(`for program in ([^;]*);`).FindStringSubmatch(script.String())
	require.Len(t, loop, 2)
	require.Equal(t, programs, strings.Fields(loop[1]), "every image is pushed and signed")
}

// TestGitHubTakesTheWorkflows runs actionlint: the syntax, expressions with their types, names of permissions, and the
// inputs and outputs of well-known actions. shellcheck is not used, so that the result is the same on any machine.
func TestGitHubTakesTheWorkflows(t *testing.T) {
	linter := func(t *testing.T, found *bytes.Buffer) *actionlint.Linter {
		t.Helper()
		linter, err := actionlint.NewLinter(found, &actionlint.LinterOptions{Oneline: true})
		require.NoError(t, err)
		return linter
	}
	files, err := filepath.Glob(filepath.Join("..", "..", ".github", "workflows", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var found bytes.Buffer
			_, err := linter(t, &found).LintFile(file, nil)
			require.NoError(t, err)
			require.Empty(t, found.String())
		})
	}
	t.Run("finds an unknown input of an action", func(t *testing.T) {
		var found bytes.Buffer
		_, err := linter(t, &found).Lint("broken.yaml", []byte("on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n"+
			"    steps:\n    - uses: actions/setup-go@v5\n      with: {go-versoin-file: go.mod}\n"), nil)
		require.NoError(t, err)
		require.Contains(t, found.String(), "go-versoin-file")
	})
}
