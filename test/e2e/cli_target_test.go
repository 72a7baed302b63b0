// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestCLIBenchOfATarget publishes into Functions of a user, with and without an output, and changes nothing else.
func TestCLIBenchOfATarget(t *testing.T) {
	onStage(t)
	t.Parallel()
	path := plugin(t)
	t.Run("with an output", func(t *testing.T) {
		t.Parallel()
		const output = "cli-target-out"
		require.NoError(t, scene.Broker.CreateTopic(t.Context(), output, 0))
		b := benchTarget(t, path, "cli-target", output)
		require.Equal(t, run.Output, b.LatencyFrom)
		require.GreaterOrEqual(t, b.Messages.Done, b.Messages.Due/2, "most results are there in time")
		require.GreaterOrEqual(t, b.Messages.Latencies.P50.Milliseconds(), int64(20), "the service time")
		require.Empty(t, subscriptions(t, output), "the reader left none")
	})
	t.Run("without an output", func(t *testing.T) {
		t.Parallel()
		b := benchTarget(t, path, "cli-target-mute", "")
		require.Equal(t, run.PolicyWait, b.LatencyFrom)
		require.Nil(t, b.Messages.Duplicates, "without results they are unknown")
		require.Nil(t, b.Samples[0].Done)
		require.GreaterOrEqual(t, b.Messages.Done, b.Messages.Published/2, "the wait of most messages is known")
	})
}

// benchTarget runs the plugin on a Function with a policy.
func benchTarget(t *testing.T, path, name, output string) run.Contender {
	t.Helper()
	f := addFunction(t, stage.FunctionConfig{
		Name: name, ServiceTime: 20 * time.Millisecond, Edit: func(object *unstructured.Unstructured) {
			if output != "" {
				require.NoError(t, unstructured.SetNestedField(object.Object, broker.TopicName(output), "spec", "output", "topic"))
			}
		},
	})
	addPolicy(t, newPolicy(name))
	awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonScaling)
	// The wait is unknown until the policy knows what a replica processes.
	require.NoError(t, f.PublishBurst(t.Context(), 200))
	awaitLearned(t, f)
	require.NoError(t, f.AwaitAllDone(t.Context()))
	before, err := f.Policy(t.Context())
	require.NoError(t, err)
	args := []string{
		"-f", benchScenario(t, 5, "limits: {maxReplicaHours: 1}\n"), "--kubeconfig", scene.Cluster.Kubeconfig(),
		"--target", "Function/" + name, "-n", stage.Namespace,
	}
	refused := exec.CommandContext(t.Context(), path,
		append(append([]string{"bench", "run"}, args...), "--i-know-this-publishes-into", name+"-else")...)
	told, err := refused.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, run.ExitUsage, refused.ProcessState.ExitCode(), "%s", told)
	require.Contains(t, string(told), "Function/"+name+" consumes "+f.Topic)

	b := benchRun(t, path, append(args, "--i-know-this-publishes-into", f.Topic)...)
	require.Zero(t, b.code, "%s%s", b.told, b.json)
	require.Len(t, b.result.Contenders, 1)
	c := b.result.Contenders[0]
	require.InDelta(t, 200, c.Messages.Due, 60)
	require.Equal(t, c.Messages.Due, c.Messages.Published)
	require.Positive(t, c.Usage.ReplicaHours)
	after, err := f.Policy(t.Context())
	require.NoError(t, err)
	require.Equal(t, before.UID, after.UID)
	require.Equal(t, before.Generation, after.Generation)
	scaled := &unstructured.Unstructured{}
	scaled.SetAPIVersion(before.Spec.ScaleTargetRef.APIVersion)
	scaled.SetKind(before.Spec.ScaleTargetRef.Kind)
	require.NoError(t, scene.Client.Get(t.Context(), client.ObjectKeyFromObject(before), scaled))
	return c
}

// subscriptions of a topic.
func subscriptions(t *testing.T, topic string) (names []string) {
	t.Helper()
	status, answer, err := scene.Broker.Admin(t.Context(), http.MethodGet,
		adminPath(broker.TopicName(topic))+"/subscriptions", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, "%s", answer)
	require.NoError(t, json.Unmarshal(answer, &names))
	return names
}

// testBenchSecured publishes with a token, and over TLS to the admin service.
func testBenchSecured(t *testing.T, s *secured) {
	onStage(t)
	const name = "cli-secured"
	deployment, err := mesh.Deployment(stage.Namespace, name, 0, replica.Instance{Name: name})
	require.NoError(t, err)
	place(t, deployment)
	policy := newPolicy(name)
	policy.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
	policy.Spec.Subscription = &v1alpha1.Subscription{Topics: []v1alpha1.TopicName{securedTopic}, Name: name}
	policy.Spec.Mode = v1alpha1.ModePaused
	place(t, policy)
	token := s.token(t, "admin", time.Hour)
	path, scenario := plugin(t), benchScenario(t, 2, "")
	text, err := os.ReadFile(scenario)
	require.NoError(t, err)
	secured := strings.NewReplacer(
		scene.Broker.AdminURL(), s.https, scene.Broker.ServiceURL(), s.ServiceURL(),
	).Replace(string(text))
	require.NoError(t, os.WriteFile(scenario, []byte(secured), 0o600))
	args := []string{
		"-f", scenario, "--kubeconfig", scene.Cluster.Kubeconfig(), "-n", stage.Namespace, "--target", "Deployment/" + name,
		"--i-know-this-publishes-into", securedTopic, "--pulsar-ca-file", file(t, "ca.crt", s.authority.PEM()),
	}
	refused := exec.CommandContext(t.Context(), path, append([]string{"bench", "run"}, args...)...)
	told, err := refused.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, run.ExitNotMeasured, refused.ProcessState.ExitCode(), "%s", told)
	require.Contains(t, string(told), "name credentials that it accepts with --pulsar-token-file")

	b := benchRun(t, path, append(args, "--pulsar-token-file", file(t, "token", token))...)
	require.Zero(t, b.code, b.told)
	c := b.result.Contenders[0]
	require.Positive(t, c.Messages.Published)
	require.Equal(t, c.Messages.Due, c.Messages.Published)
	require.Equal(t, run.PolicyWait, c.LatencyFrom)
	require.NotContains(t, b.json+b.told, token)
}
