// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

func TestBenchRunNamesTheFixWithTheExitCodeOfUsage(t *testing.T) {
	step := filepath.Join("..", "..", "examples", "bench", "step.yaml")
	target := filepath.Join("..", "..", "examples", "bench", "target.yaml")
	const publishes = "--i-know-this-publishes-into"
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	require.NoError(t, os.WriteFile(broken, []byte("kind: Scenario\nsteps: 3\n"), 0o600))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no scenario":       {nil, "--filename is missing"},
		"no such file":      {[]string{"-f", "missing.yaml"}, "no such file"},
		"an unknown key":    {[]string{"-f", broken}, `unknown field "steps"`},
		"a local scenario":  {[]string{"-f", step}, "pulsar.adminURL or pulsar.serviceURL is missing"},
		"no contenders":     {[]string{"-f", target}, "contenders is empty"},
		"a target alone":    {[]string{"-f", target, "--target", "Function/a"}, publishes + " is missing"},
		"a topic alone":     {[]string{"-f", target, publishes, "a"}, "without --target"},
		"a namespace alone": {[]string{"-f", step, "-n", "media"}, "without --target"},
		"a local target": {
			[]string{"-f", step, "--local", "--target", "Function/a", publishes, "a"}, "--local cannot be used with --target",
		},
		"a plugin without parameters": {
			[]string{"-f", step, "--pulsar-auth-plugin", "token"}, `--pulsar-auth-params-file is ""`,
		},
		"a file of parameters that is missing": {
			[]string{"-f", step, "--pulsar-auth-plugin", "token", "--pulsar-auth-params-file", "missing"}, "open missing",
		},
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
		_, _, err := scenario.Open(path)
		require.NoError(t, err)
	}
}

// withRuns has the namespaces of two runs.
func withRuns(t *testing.T) *apiServer {
	t.Helper()
	server := newAPIServer(t)
	list := corev1.NamespaceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"}}
	for _, name := range []string{"pap-bench-1", "pap-bench-2"} {
		list.Items = append(list.Items, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	server.objects["/api/v1/namespaces"] = list
	return server
}

func TestBenchCleanListsRunsAndRemovesNone(t *testing.T) {
	server := withRuns(t)
	out, err := kubectlPap(t, "", "bench", "clean", "--server", server.url)
	require.NoError(t, err)
	require.Equal(t, "pap-bench-1\npap-bench-2\n", out)
	require.Equal(t, []string{
		"/api/v1/namespaces?app.kubernetes.io/managed-by=kubectl-pap,bench.pulsar-autoscaler.io/run",
	}, server.reads(), "it deletes nothing")
	_, err = kubectlPap(t, "", "bench", "clean", "--server", server.url, "--all", "pap-bench-1")
	require.ErrorContains(t, err, "leave out one of them")
	require.Equal(t, 2, exitCode(err))
}
