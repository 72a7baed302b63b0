// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

func TestBenchRunSaysWhatToMendWithTheExitCodeOfUsage(t *testing.T) {
	step := filepath.Join("..", "..", "examples", "bench", "step.yaml")
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	require.NoError(t, os.WriteFile(broken, []byte("kind: Scenario\nsteps: 3\n"), 0o600))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no scenario":          {nil, "--filename is missing"},
		"no such file":         {[]string{"-f", "missing.yaml"}, "no such file"},
		"an unknown key":       {[]string{"-f", broken}, `unknown field "steps"`},
		"a local scenario":     {[]string{"-f", step}, "pulsar.adminURL or pulsar.serviceURL is missing"},
		"an unknown format":    {[]string{"-f", step, "-o", "yaml"}, "--output is"},
		"an argument":          {[]string{"now"}, "unknown command"},
		"an unknown flag":      {[]string{"--remote"}, "unknown flag"},
		"a file for a cluster": {[]string{"-f", step, "--kubeconfig"}, "needs an argument"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kubectlPap(t, "", append([]string{"bench", "run"}, test.args...)...)
			require.ErrorContains(t, err, test.want)
			require.Equal(t, 2, exitCode(err))
		})
	}
}

func TestShippedScenariosAreValid(t *testing.T) {
	dir := filepath.Join("..", "..", "examples", "bench")
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		file, err := os.Open(path)
		require.NoError(t, err)
		s, err := scenario.Decode(file)
		require.NoError(t, err, path)
		require.NoError(t, file.Close())
		_, err = s.Load.Schedule(os.DirFS(dir))
		require.NoError(t, err, path)
	}
}
