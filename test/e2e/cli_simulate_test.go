// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/prometheus"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// thePlugin is kubectl-pap as released.
var thePlugin = shared.New("a build of kubectl-pap", buildPlugin, os.RemoveAll)

// buildPlugin builds into a temporary directory.
func buildPlugin(ctx context.Context) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "kubectl-pap-"); err != nil {
		return "", err
	}
	if err := stage.Build(ctx, "./cmd/kubectl-pap", filepath.Join(dir, "kubectl-pap")); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// plugin is the path of the plugin.
func plugin(t *testing.T) string {
	t.Helper()
	return filepath.Join(thePlugin.Need(t), "kubectl-pap")
}

// simulated is the part of the plugin's JSON that the test reads.
type simulated struct {
	Load struct {
		Messages float64 `json:"messages"`
		Seconds  float64 `json:"seconds"`
	} `json:"load"`
	Function struct {
		Capacity struct {
			Expected float64 `json:"expected"`
			Source   string  `json:"source"`
		} `json:"messagesPerSecondPerReplica"`
	} `json:"function"`
	Contenders []struct {
		Name string `json:"name"`
	} `json:"contenders"`
}

func (s simulated) names() (names []string) {
	for _, one := range s.Contenders {
		names = append(names, one.Name)
	}
	return names
}

// simulate runs the plugin for the last 40 s and decodes its JSON.
func simulate(t *testing.T, path string, args ...string) (found simulated) {
	t.Helper()
	args = append([]string{"simulate", "-o", "json", "--since", "40s", "--step", "5s"}, args...)
	until(t, func(ctx context.Context) (string, bool) { // a machine that stalls may have recorded nothing in that time
		command := exec.CommandContext(ctx, path, args...)
		var problems bytes.Buffer
		command.Stderr = &problems
		out, err := command.Output()
		if err != nil {
			return problems.String(), false
		}
		require.NoError(t, json.Unmarshal(out, &found))
		return "", true
	})
	return found
}

// requireRecorded compares a mean with what Prometheus has recorded for the last minute: a machine that stalls
// publishes and measures in bursts.
func requireRecorded(t *testing.T, server *prometheus.Server, expression string, got float64) {
	t.Helper()
	bound := func(aggregation string) float64 {
		vector, err := server.Query(t.Context(), fmt.Sprintf("%s_over_time((%s)[1m:1s])", aggregation, expression))
		require.NoError(t, err)
		require.Len(t, vector, 1, expression)
		return float64(vector[0].Value)
	}
	const rounding = 0.1
	require.GreaterOrEqual(t, got, bound("min")*(1-rounding), expression)
	require.LessOrEqual(t, got, bound("max")*(1+rounding), expression)
	require.Positive(t, got)
}

// requireExplained compares an explanation of a time with the series of that time.
func requireExplained(t *testing.T, server *prometheus.Server, of, text string) {
	t.Helper()
	var e struct {
		At       time.Time
		Recorded map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(text), &e))
	require.Equal(t, []any{"Auto"}, e.Recorded["modes"])
	for field, series := range map[string]string{
		"publishedMessagesPerSecond": "publish_rate", "processedMessagesPerSecond": "process_rate",
		"waitSeconds": "wait_seconds", "messagesPerSecondPerReplica": "capacity_messages_per_second",
		"desiredReplicas": "desired_replicas", "runningReplicas": "running_replicas",
	} {
		expression := fmt.Sprintf("pulsar_autoscaler_policy_%s%s @ %.3f", series, of, float64(e.At.UnixMilli())/1000)
		vector, err := server.Query(t.Context(), expression)
		require.NoError(t, err)
		var want any // a machine that stalls may have measured nothing then
		if len(vector) > 0 {
			want = float64(vector[0].Value)
		}
		require.Equal(t, want, e.Recorded[field], expression)
	}
	require.NotNil(t, e.Recorded["messagesPerSecondPerReplica"], "it is learned before")
}

func TestCLISimulatesTheLoadOfARealPrometheus(t *testing.T) {
	t.Parallel()
	const name, rate = "cli-simulated", 60.0
	fromAdapter := observed(t)
	fromBroker, err := prometheus.Start(t.Context(), prometheus.Config{
		Dir: t.TempDir(), Interval: 2 * time.Second, Jobs: []prometheus.Job{{
			Name: "pulsar", Addresses: []string{strings.TrimPrefix(scene.Broker.AdminURL(), "http://")},
		}},
	})
	require.NoError(t, err)
	t.Cleanup(fromBroker.Kill)
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 20 * time.Millisecond, Replicas: 2})
	p := newPolicy(name)
	addPolicy(t, p)
	publish(t, f, load.Constant(rate))
	path := plugin(t)
	f.AwaitConditions(t, "Ready=True/Scaling")
	awaitSample(t, f, `min_over_time(pulsar_autoscaler_policy_capacity_messages_per_second{policy="`+name+`"}[2s])`,
		func(value float64) bool { return value > 0 })
	published := `timestamp(pulsar_autoscaler_policy_publish_rate{policy="` + name + `"})`
	awaitSample(t, f, `time() - min_over_time(`+published+`[5m:2s])`,
		func(recorded float64) bool { return recorded >= 45 })

	p.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "AutoscalingPolicy"}
	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": p.APIVersion, "kind": p.Kind, "metadata": map[string]any{"name": name, "namespace": stage.Namespace},
		"spec": p.Spec,
	})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, manifest, 0o600))
	page := filepath.Join(t.TempDir(), "result.html")

	ours := simulate(t, path, "-f", file, "--prometheus", fromAdapter.URL, "--html", page)
	of := `{policy="` + name + `"}`
	requireRecorded(t, fromAdapter, "pulsar_autoscaler_policy_publish_rate"+of, ours.Load.Messages/ours.Load.Seconds)
	requireRecorded(t, fromAdapter, "pulsar_autoscaler_policy_capacity_messages_per_second"+of,
		ours.Function.Capacity.Expected)
	require.Contains(t, ours.Function.Capacity.Source, "capacity_messages_per_second")
	require.Equal(t, []string{"pulsar-autoscaler", "keda", "keda-tuned", "hpa-cpu", "fixed", "recorded"}, ours.names())
	require.FileExists(t, page)

	readCluster := func(args ...string) string {
		args = append(args, "-n", stage.Namespace, "--prometheus", fromAdapter.URL,
			"--kubeconfig", scene.Cluster.Kubeconfig())
		var out []byte
		until(t, func(ctx context.Context) (_ string, done bool) {
			var err error
			out, err = exec.CommandContext(ctx, path, args...).CombinedOutput()
			return string(out), err == nil
		})
		return string(out)
	}
	plan := readCluster("plan", name, "--since", "40s", "--step", "5s")
	require.Regexp(t, `\n\S+ \(now\) +\d`, plan)
	require.Regexp(t, `\nmaxReplicas +\d+ +\d`, plan)
	requireExplained(t, fromAdapter, of, readCluster("explain", name, "--at", "5s", "-o", "json"))
	until := time.Now().Add(5 * time.Minute).UTC().Format(time.RFC3339) // whole 5 minutes have now in them
	report := readCluster("report", "--since", "10m", "--until", until, "-o", "json")
	require.Regexp(t, `(?s)"name": "`+stage.Namespace+`/`+name+`",.*?"replicaHours": 0\.\d*[1-9]`, report)

	pulsars := simulate(t, path, "--prometheus", fromBroker.URL, "--topic", f.Topic, "--capacity", "40-60")
	arrived := `sum(rate(pulsar_in_messages_total{topic="` + f.Topic + `"}[20s]))`
	requireRecorded(t, fromBroker, arrived, pulsars.Load.Messages/pulsars.Load.Seconds)
	require.NotContains(t, pulsars.names(), "recorded", "the broker knows no replicas")
}
