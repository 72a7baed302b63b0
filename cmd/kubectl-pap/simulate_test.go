// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const policyYAML = `apiVersion: pulsar-autoscaler.io/v1alpha1
kind: AutoscalingPolicy
metadata: {name: resize, namespace: media}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: resize}
  subscription: {topics: [media/images/new], name: resize, type: Exclusive}
  maxReplicas: 1
`

// kubectlPap runs the plugin and returns its output.
func kubectlPap(t *testing.T, stdin string, args ...string) (out string, err error) {
	t.Helper()
	streams, in, stdout, _ := genericiooptions.NewTestIOStreams()
	in.WriteString(stdin)
	root := newRoot(streams)
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return stdout.String(), err
}

// traceFile is ten minutes of 30 messages per second.
func traceFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "load.csv")
	require.NoError(t, os.WriteFile(path, []byte("time,rate\n0,30\n300,30\n600,30\n"), 0o600))
	return path
}

func TestSimulateReadsAPolicyFromStandardInput(t *testing.T) {
	out, err := kubectlPap(t, policyYAML, "simulate", "-f", "-", "--trace", traceFile(t), "--capacity", "40", "-o", "json")
	require.NoError(t, err)
	var result struct {
		Function struct {
			MaxReplicas int `json:"maxReplicas"`
		} `json:"function"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &result))
	require.Equal(t, 1, result.Function.MaxReplicas)
}

func TestSimulateChangesAPolicy(t *testing.T) {
	simulated := func(example string, flags ...string) string {
		out, err := kubectlPap(t, "", append([]string{
			"simulate", "-f", "../../examples/" + example, "--trace", traceFile(t), "--capacity", "50",
		}, flags...)...)
		require.NoError(t, err)
		return out
	}
	changed := func(flags ...string) string { return simulated("function.yaml", flags...) }
	require.Contains(t, changed(), "Objective: 30s, 1 to 20 replicas\n")
	require.Contains(t, changed("--start-time", "0s-40s"), "starts in 20 (0 to 40) s")
	require.NotContains(t, changed(), "schedules")
	require.Contains(t, simulated("schedules.yaml"), "the policy has schedules, which are left out, because")
	dated := filepath.Join(t.TempDir(), "dated.csv")
	require.NoError(t, os.WriteFile(dated, []byte("time,rate\n2026-03-02T07:00:00Z,3\n2026-03-02T07:05:00Z,3\n"), 0o600))
	require.NotContains(t, simulated("schedules.yaml", "--trace", dated), "left out")
	require.Contains(t, changed("--max-replicas", "3", "--latency-objective", "15s"), "Objective: 15s, 1 to 3 replicas\n")
	require.Contains(t, changed("--min-replicas", "2"), "Objective: 30s, 2 to 20 replicas\n")
}

func TestSimulateNamesTheFix(t *testing.T) {
	load, unnamed := traceFile(t), filepath.Join(t.TempDir(), "policy.yaml")
	t.Setenv("KUBECONFIG", "missing")
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // in a pod, its namespace is the default
	require.NoError(t, os.WriteFile(unnamed, []byte(strings.Replace(policyFile, ", namespace: media", "", 1)), 0o600))
	tests := map[string]struct {
		args []string
		want string
	}{
		"no load":             {[]string{"--capacity", "5"}, "[trace prometheus]"},
		"two loads":           {[]string{"--trace", load, "--prometheus", "http://p"}, "[prometheus trace]"},
		"no Prometheus":       {[]string{"--prometheus", "p:9090", "--topic", "a/b/c"}, "must be http://host:port"},
		"no topics":           {[]string{"--prometheus", "http://p"}, "name the topics"},
		"no namespace":        {[]string{"--prometheus", "http://p", "-f", unnamed}, "or the namespace"},
		"a time without unit": {[]string{"--prometheus", "http://p", "--since", "7"}, `--since is "7"`},
		"an invalid end":      {[]string{"--prometheus", "http://p", "--until", "now"}, `--until is "now"`},
		"an unknown workload": {[]string{"--prometheus", "http://p", "--workload", "pod/x"}, `--workload is "pod/x"`},
		"no token": {
			[]string{"--prometheus", "http://p", "--prometheus-token-file", "x"}, "--prometheus-token-file: open x",
		},
		"no such trace":        {[]string{"--trace", "missing.csv"}, "no such file"},
		"no capacity":          {[]string{"--trace", load}, "--capacity is missing"},
		"a capacity of 0":      {[]string{"--capacity", "0"}, "must be a number above 0"},
		"a capacity of NaN":    {[]string{"--capacity", "NaN"}, "must be a number above 0"},
		"a range upside down":  {[]string{"--capacity", "60-40"}, "name the smaller one first"},
		"a start without unit": {[]string{"--start-time", "20"}, "must be a duration"},
		"an objective too short": {
			[]string{"--trace", load, "--capacity", "5", "--latency-objective", "1ms"}, "--latency-objective is 1ms",
		},
		"no such policy": {[]string{"-f", "missing.yaml", "--trace", load}, "--filename: open missing.yaml"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := kubectlPap(t, "", append([]string{"simulate"}, tt.args...)...)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestSimulateReadsThePolicyOfTheContextsNamespace(t *testing.T) {
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"matrix","result":[]}}`))
	}))
	t.Cleanup(prometheus.Close)
	kubeconfig := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", kubeconfig)
	require.NoError(t, os.WriteFile(kubeconfig, []byte(`{current-context: a, contexts: [{name: a, context: {cluster: a,
		namespace: pictures}}], clusters: [{name: a, cluster: {server: "http://a"}}]}`), 0o600))
	function := strings.Replace(policyFile, ", namespace: media", "", 1)
	for want, args := range map[string][]string{"pictures": nil, "shop": {"-n", "shop"}} {
		_, err := kubectlPap(t, function, append([]string{"simulate", "-f", "-", "--prometheus", prometheus.URL}, args...)...)
		require.ErrorContains(t, err, `looked for max(pulsar_autoscaler_policy_publish_rate{namespace="`+want+`",`+
			`policy="thumbs"})`)
	}
	require.NoError(t, os.WriteFile(kubeconfig, []byte("{"), 0o600))
	for want, args := range map[string][]string{"reading the kubeconfig": nil, `namespace="shop"`: {"-n", "shop"}} {
		_, err := kubectlPap(t, function, append([]string{"simulate", "-f", "-", "--prometheus", prometheus.URL}, args...)...)
		require.ErrorContains(t, err, want)
	}
}

func TestTheVersionIsThatOfTheBuild(t *testing.T) {
	out, err := kubectlPap(t, "", "--version")
	require.NoError(t, err)
	require.Contains(t, out, "go1.")
}

func TestExitCodeIsThatOfTheError(t *testing.T) {
	require.Equal(t, 1, exitCode(errors.New("it failed")))
	require.Equal(t, 3, exitCode(fmt.Errorf("measuring: %w", withCode(errors.New("it ended"), 3))))
}
