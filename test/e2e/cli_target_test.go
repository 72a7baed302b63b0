// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestCLIBenchOfATarget publishes into Functions of a user, with and without an output, and into a component of a
// FunctionMesh, and changes nothing else.
func TestCLIBenchOfATarget(t *testing.T) {
	onStage(t)
	t.Parallel()
	path := plugin(t)
	t.Run("with an output", func(t *testing.T) {
		t.Parallel()
		const name, output = "cli-target", "cli-target-out"
		require.NoError(t, scene.Broker.CreateTopic(t.Context(), output, 0))
		f := addFunction(t, stage.FunctionConfig{
			Name: name, ServiceTime: 20 * time.Millisecond, Edit: func(object *unstructured.Unstructured) {
				require.NoError(t, unstructured.SetNestedField(object.Object, broker.TopicName(output), "spec", "output", "topic"))
			},
		})
		addPolicy(t, newPolicy(name))
		b := benchTarget(t, path, f, "Function/"+name)
		require.Equal(t, run.Output, b.LatencyFrom)
		require.GreaterOrEqual(t, b.Messages.Latencies.P50.Milliseconds(), int64(20), "the service time")
		require.Empty(t, subscriptions(t, output), "the reader left none")
	})
	t.Run("without an output", func(t *testing.T) {
		t.Parallel()
		const name = "cli-target-mute"
		f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 20 * time.Millisecond})
		addPolicy(t, newPolicy(name))
		b := benchTarget(t, path, f, "Function/"+name)
		require.Equal(t, run.PolicyWait, b.LatencyFrom)
		require.Nil(t, b.Messages.Duplicates, "without results they are unknown")
		require.Nil(t, b.Samples[0].Done)
	})
	t.Run("a component of a mesh", func(t *testing.T) {
		t.Parallel()
		const entry = "cli-target-part"
		m := addMesh(t, "cli-target-mesh", stage.FunctionConfig{Name: entry, ServiceTime: 20 * time.Millisecond})
		f := m.Functions[0]
		addPolicy(t, componentPolicy(m, f, entry))
		b := benchTarget(t, path, f, "FunctionMesh/cli-target-mesh:Function/"+entry)
		require.Equal(t, run.PolicyWait, b.LatencyFrom)
	})
}

// benchTarget runs the plugin on a Function with a policy.
func benchTarget(t *testing.T, path string, f *stage.Function, target string) run.Contender {
	t.Helper()
	f.AwaitConditions(t, "Ready=True/Scaling")
	// The wait is unknown until the policy knows what a replica processes, and then until its next status.
	stop := publish(t, f, load.Constant(100)) // 50/s each
	awaitLearned(t, f)
	stop()
	require.NoError(t, f.AwaitAllDone(t.Context()))
	f.AwaitPolicy(t, "the wait to be known and short", func(p *v1alpha1.AutoscalingPolicy) bool {
		s := p.Status.Signals
		return s != nil && s.Wait != nil && s.Wait.Duration < time.Second
	})
	before, err := f.Policy(t.Context())
	require.NoError(t, err)
	require.Equal(t, target, before.Status.Target)
	args := []string{
		"-f", benchScenario(t, 5, "limits: {maxLateRatio: 0.01, maxP99: 1m}\n"), "--kubeconfig", scene.Cluster.Kubeconfig(),
		"--target", target, "-n", stage.Namespace,
	}
	refused := exec.CommandContext(t.Context(), path,
		append(append([]string{"bench", "run"}, args...), "--i-know-this-publishes-into", f.Name+"-else")...)
	told, err := refused.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, run.ExitUsage, refused.ProcessState.ExitCode(), "%s", told)
	require.Contains(t, string(told), target+" consumes "+f.Topic)

	c := benchMeasured(t, path, allDone, append(args, "--i-know-this-publishes-into", f.Topic)...)
	require.InDelta(t, 50, c.Messages.Due, 15)
	after, err := f.Policy(t.Context())
	require.NoError(t, err)
	require.Equal(t, before.UID, after.UID)
	require.Equal(t, before.Generation, after.Generation)
	_, err = f.Replicas(t.Context())
	require.NoError(t, err, "the Function is still there")
	return c
}

// benchOfWorker publishes into what a function worker runs.
func (w *workerBroker) benchOfWorker(t *testing.T, target, topic string) {
	t.Helper()
	c := benchMeasured(t, plugin(t), allPublished,
		"-f", benchScenarioAt(t, w.AdminURL(), w.ServiceURL(), 2, ""), "--kubeconfig", scene.Cluster.Kubeconfig(),
		"-n", stage.Namespace, "--target", target, "--i-know-this-publishes-into", topic)
	require.Equal(t, target, c.Name)
	require.Equal(t, run.PolicyWait, c.LatencyFrom, "it has no output")
}

// benchMeasured runs the plugin on a target, which has replicas and gets all messages.
func benchMeasured(t *testing.T, path string, expected func(run.Result) bool, args ...string) run.Contender {
	t.Helper()
	b := benchRun(t, path, run.ExitMet, expected, args...)
	require.Len(t, b.result.Contenders, 1)
	c := b.result.Contenders[0]
	require.Positive(t, c.Messages.Published)
	require.Positive(t, c.Usage.ReplicaHours)
	return c
}

// subscriptions of a topic.
func subscriptions(t *testing.T, topic string) (names []string) {
	t.Helper()
	path := adminPath(broker.TopicName(topic)) + "/subscriptions"
	answer, err := scene.Broker.Demand(t.Context(), http.MethodGet, path, nil)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(answer, &names))
	return names
}

// testBenchSecured publishes with credentials of each kind, and over TLS to brokers and the admin service.
func testBenchSecured(t *testing.T, s *secured) {
	onStage(t)
	const name = "cli-secured"
	deployment, err := mesh.Deployment(stage.Namespace, name, 0, replica.Instance{Name: name})
	require.NoError(t, err)
	create(t, deployment)
	policy := newPolicy(name)
	policy.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
	policy.Spec.Subscription = &v1alpha1.Subscription{Topics: []v1alpha1.TopicName{securedTopic}, Name: name}
	policy.Spec.Mode = v1alpha1.ModePaused
	create(t, policy)
	path, authority := plugin(t), file(t, "ca.crt", s.authority.PEM())
	bench := func(ctx context.Context, adminURL, serviceURL string, flags ...string) *exec.Cmd {
		command := exec.CommandContext(ctx, path, append([]string{
			"bench", "run", "-o", "json", "-f", benchScenarioAt(t, adminURL, serviceURL, 2, ""),
			"--kubeconfig", scene.Cluster.Kubeconfig(), "-n", stage.Namespace, "--target", "Deployment/" + name,
			"--i-know-this-publishes-into", securedTopic, "--pulsar-ca-file", authority,
		}, flags...)...)
		command.Env = append(os.Environ(), "SSL_CERT_FILE="+authority) // the OAuth2 issuer has a certificate of it
		return command
	}
	refused := bench(t.Context(), s.https, s.ssl)
	told, err := refused.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, run.ExitNotMeasured, refused.ProcessState.ExitCode(), "%s", told)
	require.Contains(t, string(told), "name credentials that it accepts with --pulsar-token-file")

	token, pair := s.token(t, "produce", time.Hour), s.certificate(t, s.authority, certificateRole)
	params := func(plugin, text string) []string {
		return []string{"--pulsar-auth-plugin", plugin, "--pulsar-auth-params-file", file(t, "params", text)}
	}
	var group errgroup.Group // t.Parallel would wait until other tests end
	for kind, test := range map[string]struct {
		adminURL, serviceURL, secret string
		flags                        []string
	}{
		"a token":       {s.https, s.ServiceURL(), token, []string{"--pulsar-token-file", file(t, "token", token)}},
		"a password":    {s.AdminURL(), s.ssl, password, params("basic", passwordRole+":"+password)},
		"a certificate": {s.https, s.ssl, pair.Key, params("tls", pair.DataURLs())},
		"an OAuth2 client": {
			s.https, s.ssl, secret, params("oauth2", s.client(t, clientRole, secret, audience).Params),
		},
	} {
		group.Go(func() error {
			t.Run(kind, func(t *testing.T) {
				b := benchOf(t, run.ExitMet, allPublished, func(ctx context.Context) *exec.Cmd {
					return bench(ctx, test.adminURL, test.serviceURL, test.flags...)
				})
				c := b.result.Contenders[0]
				require.Positive(t, c.Messages.Published)
				require.Equal(t, run.PolicyWait, c.LatencyFrom)
				require.NotContains(t, b.json+b.told, test.secret)
			})
			return nil
		})
	}
	_ = group.Wait() // the cases report to t
}
