// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/keda"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
)

// sharedBroker is the one broker of this package's tests.
var sharedBroker = shared.New("a real broker", func(ctx context.Context) (*broker.Broker, error) {
	return broker.Start(ctx, broker.Config{Progress: os.Stderr, WithoutWorker: true})
}, (*broker.Broker).Discard)

func TestMain(m *testing.M) {
	shared.MainAfter(m, func(ctx context.Context) error {
		_, err := binaries.BuildKEDA(ctx, os.Stderr)
		return err
	}, sharedBroker)
}

const often = 100 * time.Millisecond

// programs are KEDA's, which TestMain has built.
func programs(t *testing.T) binaries.KEDA {
	t.Helper()
	built, err := binaries.BuildKEDA(t.Context(), os.Stderr)
	require.NoError(t, err)
	return built
}

// startCluster starts a control plane that knows KEDA's kinds.
func startCluster(t *testing.T) (*cluster.Cluster, kubernetes.Interface) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the real KEDA")
	}
	c, err := cluster.Start(t.Context(), cluster.Config{
		HPASyncPeriod: time.Second, Progress: os.Stderr, CRDs: programs(t).CRDs,
	})
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	clientset, err := kubernetes.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	return c, clientset
}

func startKEDA(t *testing.T, c *cluster.Cluster) *keda.KEDA {
	t.Helper()
	start := time.Now()
	k, err := keda.Start(t.Context(), c, keda.Config{
		OperatorFlags: []string{"--kube-api-qps=100", "--kube-api-burst=200"},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(k.Operator.LogTail(30))
		}
		k.Stop()
	})
	t.Logf("KEDA %s worked after %s", k.Version, time.Since(start).Round(time.Millisecond))
	return k
}

// scaled is a Deployment without replicas and a ScaledObject of KEDA's own pulsar scaler, 10 messages a replica.
func scaled(name, adminURL string) []*unstructured.Unstructured {
	labels := map[string]any{"app": name}
	return []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{
					"metadata": map[string]any{"labels": labels},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "none"}}},
				},
			},
		}},
		{Object: map[string]any{
			"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"scaleTargetRef": map[string]any{"name": name}, "maxReplicaCount": int64(10),
				"pollingInterval": int64(1), "cooldownPeriod": int64(3),
				"advanced": map[string]any{"horizontalPodAutoscalerConfig": map[string]any{"behavior": map[string]any{
					"scaleDown": map[string]any{"stabilizationWindowSeconds": int64(0)},
				}}},
				"triggers": []any{map[string]any{"type": "pulsar", "metadata": map[string]any{
					"adminURL": adminURL, "topic": broker.TopicName(name), "subscription": "worker", "msgBacklogThreshold": "10",
				}}},
			},
		}},
	}
}

func publish(t *testing.T, topic string, messages float64) {
	t.Helper()
	publisher, err := load.New(load.Config{ServiceURL: sharedBroker.Need(t).ServiceURL(), Topic: broker.TopicName(topic)})
	require.NoError(t, err)
	defer publisher.Close()
	shape := load.Burst(messages, 0, 100*time.Millisecond)
	shape.Duration = shape.Burst.Within // Run ends with it
	require.NoError(t, publisher.Run(t.Context(), shape))
}

// requireReplicas leaves room for what the HorizontalPodAutoscaler tolerates: 10 % more or less than one replica is
// for.
func requireReplicas(t *testing.T, clientset kubernetes.Interface, name string, least, most int32) {
	t.Helper()
	err := cluster.WaitFor(t.Context(), fmt.Sprintf("%d to %d replicas", least, most), often,
		func(ctx context.Context) (bool, string, error) {
			scale, err := clientset.AppsV1().Deployments("default").GetScale(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, "", err
			}
			return scale.Spec.Replicas >= least && scale.Spec.Replicas <= most, fmt.Sprint(scale.Spec.Replicas), nil
		})
	require.NoError(t, err)
}

// TestKEDAScalesADeploymentByItsOwnPulsarScalerAndBack begins with a start that fails and leaves room for another, and
// with the fixtures of package policy/migrate, which are objects of KEDA.
func TestKEDAScalesADeploymentByItsOwnPulsarScalerAndBack(t *testing.T) {
	c, clientset := startCluster(t)
	requireTranslatable(t, c)
	_, err := keda.Start(t.Context(), c, keda.Config{OperatorFlags: []string{"--no-such-flag"}})
	require.ErrorContains(t, err, "keda-operator")
	require.ErrorContains(t, err, "unknown flag: --no-such-flag", "in its own words")
	k := startKEDA(t, c)
	const name = "orders"
	require.NoError(t, sharedBroker.Need(t).CreateTopic(t.Context(), name, 0))
	require.NoError(t, sharedBroker.Need(t).CreateSubscription(t.Context(), name, "worker", broker.Earliest))
	require.NoError(t, c.Apply(t.Context(), scaled(name, sharedBroker.Need(t).AdminURL())...))

	publish(t, name, 35)
	requireReplicas(t, clientset, name, 3, 4)

	// Neither of the two is needed for the other to come back.
	require.NoError(t, k.MetricsServer.Restart(t.Context()))
	require.NoError(t, k.Operator.Stop())
	require.NoError(t, k.Operator.Restart(t.Context()))
	publish(t, name, 40)
	requireReplicas(t, clientset, name, 6, 8)

	_, err = sharedBroker.Need(t).Demand(t.Context(), http.MethodPost,
		"/admin/v2/persistent/public/default/"+name+"/subscription/worker/skip_all", nil)
	require.NoError(t, err)
	requireReplicas(t, clientset, name, 0, 0)
}
