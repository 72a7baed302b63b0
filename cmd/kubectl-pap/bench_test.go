// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
		"an unknown format":    {[]string{"-f", step, "-o", "csv"}, "it must be one of json, yaml"},
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

// apiServer has the namespaces of two runs. requests returns what it received.
func apiServer(t *testing.T) (url string, requests func() []string) {
	t.Helper()
	answers := map[string]string{
		"/api":  `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
		"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
			{"name": "namespaces", "kind": "Namespace", "namespaced": false, "verbs": ["list", "delete"]}]}`,
		"/api/v1/namespaces": `{"kind": "NamespaceList", "apiVersion": "v1", "items": [
			{"metadata": {"name": "pap-bench-1"}}, {"metadata": {"name": "pap-bench-2"}}]}`,
	}
	seen := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Method + " " + r.URL.Path + " " + r.URL.Query().Get("labelSelector")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answers[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	return server.URL, func() (all []string) {
		for len(seen) > 0 {
			all = append(all, <-seen)
		}
		return all
	}
}

func TestBenchCleanListsRunsAndRemovesNone(t *testing.T) {
	url, requests := apiServer(t)
	out, err := kubectlPap(t, "", "bench", "clean", "--server", url)
	require.NoError(t, err)
	require.Equal(t, "pap-bench-1\npap-bench-2\n", out)
	all := requests()
	require.Contains(t, all,
		"GET /api/v1/namespaces app.kubernetes.io/managed-by=kubectl-pap,bench.pulsar-autoscaler.io/run")
	for _, request := range all {
		require.True(t, strings.HasPrefix(request, "GET "), request)
	}
	_, err = kubectlPap(t, "", "bench", "clean", "--server", url, "--all", "pap-bench-1")
	require.ErrorContains(t, err, "leave out one of them")
	require.Equal(t, 2, exitCode(err))
}
