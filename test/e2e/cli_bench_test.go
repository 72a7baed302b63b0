// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
)

// benchScenario is benchScenarioAt for the broker of the stage.
func benchScenario(t *testing.T, seconds int, rest string) string {
	t.Helper()
	return benchScenarioAt(t, scene.Broker.AdminURL(), scene.Broker.ServiceURL(), seconds, rest)
}

// benchScenarioAt writes a scenario with these contenders and limits, and a load of that many seconds. The load takes a
// fifth of one replica, so that a machine at a third of its speed processes it too: late messages are then a defect.
// Each message has all of its objective before the watch ends.
func benchScenarioAt(t *testing.T, adminURL, serviceURL string, seconds int, rest string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scenario.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `apiVersion: bench.pulsar-autoscaler.io/v1alpha1
kind: Scenario
metadata: {name: test}
pulsar: {adminURL: '%s', serviceURL: '%s'}
load: {duration: %ds, constant: {rate: 10}, arrivals: Poisson, seed: 1}
function: {serviceTime: 20ms, image: of-no-meaning-here}
latencyObjective: 1m
watchAfter: 20s
%s`, adminURL, serviceURL, seconds, rest), 0o600))
	return path
}

// benched is the result of a run of the plugin.
type benched struct {
	code   int
	result run.Result
	told   string
	// json is the result as it was written.
	json string
}

// benchRun runs kubectl pap bench run, which has to end with this code and an expected result. Where the machine
// stalled, so that the load itself was late, it says that nothing was measured, and runs again. No stall is as long as
// the objective of the scenarios.
func benchRun(
	t *testing.T, path string, code int, expected func(run.Result) bool, args ...string,
) (b benched) {
	t.Helper()
	return benchOf(t, code, expected, func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, path, append([]string{"bench", "run", "-o", "json"}, args...)...)
	})
}

// benchOf is benchRun of a command.
func benchOf(t *testing.T, code int, expected func(run.Result) bool,
	command func(ctx context.Context) *exec.Cmd,
) (b benched) {
	t.Helper()
	until(t, func(ctx context.Context) (string, bool) {
		one := command(ctx)
		one.Dir = filepath.Join("..", "..")
		var told bytes.Buffer
		one.Stderr = &told
		out, err := one.Output()
		b = benched{code: one.ProcessState.ExitCode(), told: told.String(), json: string(out)}
		require.NotEqual(t, run.ExitUsage, b.code, b.told)
		if len(out) > 0 {
			require.NoError(t, json.Unmarshal(out, &b.result), "%s", b.told)
		}
		return fmt.Sprint(err, "\n", b.told, b.json), b.code != run.ExitNotMeasured
	})
	require.Equal(t, code, b.code, b.told)
	require.NotEmpty(t, b.result.Contenders, b.json)
	require.True(t, expected(b.result), b.json)
	return b
}

// allDone reports whether each message of each contender was published and processed.
func allDone(result run.Result) bool {
	return allPublished(result) && !slices.ContainsFunc(result.Contenders, func(c run.Contender) bool {
		return c.Messages.Done != c.Messages.Due
	})
}

// allPublished reports whether each message of each contender was published.
func allPublished(result run.Result) bool {
	return !slices.ContainsFunc(result.Contenders, func(c run.Contender) bool {
		return c.Messages.Published != c.Messages.Due
	})
}

// benchLeftovers are the namespaces and topics of runs.
func benchLeftovers(t *testing.T) (left []string) {
	t.Helper()
	var namespaces corev1.NamespaceList
	require.NoError(t, scene.Client.List(t.Context(), &namespaces,
		client.MatchingLabels{"app.kubernetes.io/managed-by": "kubectl-pap"}))
	for i := range namespaces.Items {
		left = append(left, namespaces.Items[i].Name)
	}
	for _, topic := range topicsOf(t, scene.Broker, "") {
		if strings.Contains(topic, "pap-bench-") {
			left = append(left, topic)
		}
	}
	return left
}

func TestCLIBench(t *testing.T) {
	onStage(t)
	t.Parallel()
	path := plugin(t)
	t.Run("runs on a cluster", func(t *testing.T) { testBenchOnACluster(t, path) })
	t.Run("runs without Function Mesh", func(t *testing.T) { testBenchOfADeployment(t, path) })
	t.Run("cleans up after an interrupt", func(t *testing.T) { testBenchInterrupted(t, path) })
}

// verdictOfTwo is the title of the page.
var verdictOfTwo = regexp.MustCompile(
	`<h1>\S+ s objective met for [0-9.]+% of messages, with .* replica-hours (than|as) fixed</h1>`)

func testBenchOnACluster(t *testing.T, plugin string) {
	t.Helper()
	require.Empty(t, benchLeftovers(t))
	html := filepath.Join(t.TempDir(), "result.html")
	b := benchRun(t, plugin, run.ExitMet, allDone, "-f", benchScenario(t, 5, `order: SideBySide
contenders:
- {name: policy, policy: {}}
- {name: fixed, fixed: {replicas: 2}}
limits: {maxLateRatio: 0.01, maxP99: 1m, maxDuplicates: 0}
`), "--kubeconfig", scene.Cluster.Kubeconfig(), "--html", html)
	require.Equal(t, run.Met, b.result.Verdict.Outcome)
	require.Len(t, b.result.Contenders, 2)
	for _, c := range b.result.Contenders {
		require.InDelta(t, 50, c.Messages.Due, 15, c.Name)
		require.GreaterOrEqual(t, c.Messages.Latencies.P50.Milliseconds(), int64(20), "the service time of %s", c.Name)
		require.Positive(t, c.Usage.ReplicaHours, c.Name)
	}
	require.Equal(t, b.result.Contenders[0].Messages.Due, b.result.Contenders[1].Messages.Due, "the same load")
	require.Equal(t, 2, b.result.Contenders[1].Usage.MostReplicas)
	page, err := os.ReadFile(html)
	require.NoError(t, err)
	require.True(t, verdictOfTwo.Match(page), "its title compares the two")
	require.Contains(t, string(page), "Scenario test, run ")
	require.Empty(t, benchLeftovers(t))
}

func testBenchInterrupted(t *testing.T, plugin string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), plugin, "bench", "run", "-f",
		benchScenario(t, 600, "contenders: [{name: interrupted, fixed: {replicas: 1}}]\n"),
		"--kubeconfig", scene.Cluster.Kubeconfig())
	told, err := command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	lines := bufio.NewScanner(told)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "interrupted: publishing") {
			require.NotEmpty(t, benchLeftovers(t))
			require.NoError(t, command.Process.Signal(os.Interrupt))
		}
	}
	require.Error(t, command.Wait())
	require.Equal(t, run.ExitNotMeasured, command.ProcessState.ExitCode())
	require.Empty(t, benchLeftovers(t))
}

// TestCLIBenchOnThisMachine starts its own broker and control plane.
func TestCLIBenchOnThisMachine(t *testing.T) {
	t.Parallel()
	onStage(t)
	scenario := benchScenario(t, 5, `contenders: [{name: fixed, fixed: {replicas: 2}}]
limits: {maxReplicaHours: 0}
`)
	b := benchRun(t, plugin(t), run.ExitMissed, allDone, "--local", "-f", scenario)
	require.Equal(t, run.Missed, b.result.Verdict.Outcome)
	require.Empty(t, b.result.Differs)
}
