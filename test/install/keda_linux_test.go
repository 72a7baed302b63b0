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
	operator, err := keda.Start(t.Context(), s.Cluster, keda.Config{OperatorEnv: []string{"NO_PROXY=*"}})
	require.NoError(t, err)
	t.Cleanup(operator.Stop)
	s.createNamespace(t, namespace)
	users, ours := s.addSlowFunction(t, "triggered"), s.addSlowFunction(t, "decided")
	before := s.objects(t)

	s.install(t, "scaler.enabled=true", "watchNamespaces={"+stage.Namespace+"}")
	s.requireNoStrangers(t)
	object := s.addTrigger(t, users.Name)
	p := newPolicy(ours)
	p.Spec.Actuator = v1alpha1.ActuatorKEDA
	p.Spec.Strategies = []v1alpha1.Strategy{{
		Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: 20},
	}}
	require.NoError(t, s.Client.Create(t.Context(), p))
	for _, f := range []*stage.Function{users, ours} {
		require.NoError(t, f.PublishBurst(t.Context(), 400))
		s.await(t, "more replicas of "+f.Name, func(ctx context.Context) (bool, string, error) {
			replicas, err := f.Replicas(ctx)
			return replicas.Spec >= 3, fmt.Sprintf("%+v\n%s", replicas, operator.Operator.LogTail(10)), err
		})
	}
	found, err := s.exists(t.Context(), scaledObject(plan.AutoscalerName(ours.Name)))
	require.NoError(t, err)
	require.True(t, found)

	require.NoError(t, s.Client.Delete(t.Context(), object))
	require.NoError(t, s.Client.Delete(t.Context(), p))
	for _, name := range []string{object.GetName(), plan.AutoscalerName(ours.Name)} {
		s.await(t, "ScaledObject "+name+" to be gone", func(ctx context.Context) (bool, string, error) {
			found, err := s.exists(ctx, scaledObject(name))
			return !found, "it exists", err
		})
	}
	s.uninstall(t)
	s.requireNamespacesGo(t, "after-keda")
	s.requireLeft(t, before, definitions()...)
	s.removeKEDA(t, operator)
	for _, f := range []*stage.Function{users, ours} {
		require.NoError(t, f.Remove(t.Context()))
	}
	s.removeNamespace(t, namespace)
}

// addSlowFunction adds a Function that takes a quarter of a second for a message.
func (s *scene) addSlowFunction(t *testing.T, name string) *stage.Function {
	t.Helper()
	f, err := s.AddFunction(t.Context(), stage.FunctionConfig{
		Name: name, ServiceTime: 250 * time.Millisecond, AdminURL: s.adminURL,
	})
	require.NoError(t, err)
	return f
}

func scaledObject(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("keda.sh/v1alpha1")
	object.SetKind("ScaledObject")
	object.SetNamespace(stage.Namespace)
	object.SetName(name)
	return object
}

// addTrigger creates a ScaledObject as in docs/keda.md.
func (s *scene) addTrigger(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	object := scaledObject(name)
	object.Object["spec"] = map[string]any{
		"scaleTargetRef": map[string]any{
			"apiVersion": "compute.functionmesh.io/v1alpha1", "kind": "Function", "name": name,
		},
		"minReplicaCount": int64(1), "maxReplicaCount": int64(10),
		"triggers": []any{map[string]any{
			"type": "external-push",
			"metadata": map[string]any{
				"scalerAddress": scalerAddress, "target": "Function/" + name, "messagesPerReplica": "20",
			},
			"authenticationRef": map[string]any{
				"kind": "ClusterTriggerAuthentication", "name": "pulsar-autoscaler-scaler",
			},
		}},
	}
	require.NoError(t, s.Client.Create(t.Context(), object))
	return object
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
