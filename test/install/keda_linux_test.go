// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/keda"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// scalerAddress is the address in the triggers of the documentation.
const scalerAddress = "scaler." + namespace + ".svc:9090"

// TestKEDACallsTheScaler covers the ScaledObject of a user and that of a policy, with permissions in their namespace
// alone. The chart and KEDA each create their own certificates.
func TestKEDACallsTheScaler(t *testing.T) {
	s := openAll(t)
	operator := s.startKEDA(t)
	s.createNamespace(t, namespace)
	const slow = 250 * time.Millisecond
	users, ours := s.addFunction(t, "triggered", slow), s.addFunction(t, "decided", slow)
	before := s.objects(t)

	s.install(t, "scaler.enabled=true", "watchNamespaces={"+stage.Namespace+"}")
	s.requireNoStrangers(t)
	s.addTrigger(t, users.Name)
	p := stage.NewPolicy(ours.Name, 1, maxReplicas, objective)
	p.Spec.Actuator = v1alpha1.ActuatorKEDA
	p.Spec.Strategies = []v1alpha1.Strategy{{
		Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: 20},
	}}
	require.NoError(t, s.Client.Create(t.Context(), p))
	for _, f := range []*stage.Function{users, ours} {
		require.NoError(t, f.PublishBurst(t.Context(), 400))
		s.Await(t, "more replicas of "+f.Name, func(ctx context.Context) (bool, string, error) {
			replicas, err := f.Replicas(ctx)
			return replicas.Spec >= 3, fmt.Sprintf("%+v\n%s", replicas, operator.Operator.LogTail(10)), err
		})
	}
	written, err := s.ScaledObject(plan.AutoscalerName(ours.Name)).Read(t.Context())
	require.NoError(t, err)

	require.NoError(t, s.Client.Delete(t.Context(), p))
	require.NoError(t, s.ScaledObject(users.Name).Remove(t.Context()))
	s.AwaitGone(t, written)
	s.uninstall(t)
	s.requireNamespacesGo(t, "after-keda")
	s.requireLeft(t, before, definitions()...)
	s.removeKEDA(t, operator)
	s.removeNamespace(t, namespace)
}

func (s *scene) startKEDA(t *testing.T) *keda.KEDA {
	t.Helper()
	operator, err := keda.Start(t.Context(), s.Cluster, keda.Config{OperatorEnv: []string{"NO_PROXY=*"}})
	require.NoError(t, err)
	t.Cleanup(operator.Stop)
	return operator
}

// addTrigger creates a ScaledObject as in docs/keda.md.
func (s *scene) addTrigger(t *testing.T, name string) {
	t.Helper()
	trigger := map[string]any{
		"type": "external-push",
		"metadata": map[string]any{
			"scalerAddress": scalerAddress, "target": "Function/" + name, "messagesPerReplica": "20",
		},
		"authenticationRef": map[string]any{
			"kind": "ClusterTriggerAuthentication", "name": "pulsar-autoscaler-scaler",
		},
	}
	require.NoError(t, s.Client.Create(t.Context(), stage.NewScaledObject(name,
		autoscalingv2.CrossVersionObjectReference{}, trigger,
		map[string]any{"minReplicaCount": int64(1), "maxReplicaCount": int64(10)})))
}

// requireNoStrangers fails when a replica of the scaler answers a client without a certificate.
func (s *scene) requireNoStrangers(t *testing.T) {
	t.Helper()
	pods, err := s.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/component=scaler",
	})
	require.NoError(t, err)
	require.Len(t, pods.Items, 2)
	for i := range pods.Items {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}}
		address := net.JoinHostPort(pods.Items[i].Status.PodIP, "9090")
		connection, err := dialer.DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
		_, err = connection.Read(make([]byte, 1)) // TLS 1.3 rejects clients after the handshake
		require.ErrorContains(t, err, "certificate required")
		require.NoError(t, connection.Close())
	}
}

// removeKEDA keeps its CRDs.
func (s *scene) removeKEDA(t *testing.T, operator *keda.KEDA) {
	t.Helper()
	operator.Stop()
	service := &unstructured.Unstructured{}
	service.SetAPIVersion("apiregistration.k8s.io/v1")
	service.SetKind("APIService")
	service.SetName("v1beta1.external.metrics.k8s.io")
	require.NoError(t, s.Client.Delete(t.Context(), service))
	s.removeNamespace(t, "keda")
}
