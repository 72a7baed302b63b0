// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// mounted is a directory as the kubelet mounts a Secret.
type mounted struct{ dir string }

func (m mounted) path(file string) string { return filepath.Join(m.dir, file) }

func (m mounted) write(t *testing.T, file string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(m.path(file), content, 0o600))
}

func (m mounted) flags() []string {
	return []string{
		"--tls-cert-file=" + m.path("tls.crt"), "--tls-private-key-file=" + m.path("tls.key"),
		"--tls-ca-file=" + m.path("ca.crt"), "--keda-scaler-address=localhost:1",
	}
}

// issued is an authority and a certificate of it for the adapter.
type issued struct{ authority, certificate, key []byte }

func (s *scene) issue(t *testing.T, name string) issued {
	t.Helper()
	authority, err := s.NewAuthority(name)
	require.NoError(t, err)
	certificate, key, err := authority.Issue("adapter", "adapter."+namespace+".svc")
	require.NoError(t, err)
	read := func(path string) []byte {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		return content
	}
	return issued{read(authority.CAFile()), read(certificate), read(key)}
}

func (s *scene) files(t *testing.T) {
	first, second := s.issue(t, "first"), s.issue(t, "second")
	m := mounted{t.TempDir()}
	m.write(t, "ca.crt", first.authority)
	m.write(t, "tls.crt", first.certificate)
	m.write(t, "tls.key", first.key)
	require.NoError(t, s.Apply(t.Context(), ofAnotherServer()))
	require.NoError(t, s.Apply(t.Context(), consumer(), policy()))
	s.adapters(t, m.flags()...)
	s.await(t, "a replica to leave the group to its server", func(context.Context) (bool, string, error) {
		return slices.ContainsFunc([]string{s.replicas[0].LogTail(200), s.replicas[1].LogTail(200)}, func(log string) bool {
			return strings.Contains(log, "another server has this API group") && strings.Contains(log, "monitoring/prometheus")
		}), "", nil
	})
	s.awaitActuator(t, v1alpha1.ActuatorKEDA)
	services := s.dynamic.Resource(apiServices())
	require.NoError(t, services.Delete(t.Context(), ofAnotherServer().GetName(), metav1.DeleteOptions{}))
	s.awaitBundle(t, first.authority)
	require.NoError(t, s.WaitMetricsAPI(t.Context()))
	s.awaitActuator(t, v1alpha1.ActuatorHPA)

	load := s.load(t)
	both := slices.Concat(second.authority, first.authority)
	m.write(t, "ca.crt", both)
	s.awaitBundle(t, both)
	soon := load.count() + 200 // the aggregator follows within some of them
	s.await(t, "more requests", func(context.Context) (bool, string, error) {
		return load.count() > soon, fmt.Sprint(load.count()), nil
	})
	m.write(t, "tls.key", second.key)
	m.write(t, "tls.crt", second.certificate)
	leaf, _ := pem.Decode(second.certificate)
	s.await(t, "both replicas to serve the new certificate", func(ctx context.Context) (bool, string, error) {
		for _, port := range s.ports {
			if shown, err := s.served(ctx, port); err != nil || !bytes.Equal(shown, leaf.Bytes) {
				return false, fmt.Sprintf("port %d serves another certificate: %v", port, err), nil
			}
		}
		return true, "", nil
	})
	m.write(t, "ca.crt", second.authority)
	s.awaitBundle(t, second.authority)
	load.requireNoFailure(t)
}

func (s *scene) awaitBundle(t *testing.T, authorities []byte) {
	t.Helper()
	s.await(t, "the APIServices to trust the authorities", func(ctx context.Context) (bool, string, error) {
		return s.trusts(ctx, authorities)
	})
}

// awaitActuator waits for what carries out the policy's decisions.
func (s *scene) awaitActuator(t *testing.T, want v1alpha1.Actuator) {
	t.Helper()
	s.await(t, "actuator "+string(want), func(ctx context.Context) (bool, string, error) {
		resource := v1alpha1.GroupVersion().WithResource("autoscalingpolicies")
		read, err := s.dynamic.Resource(resource).Namespace("default").Get(ctx, policy().GetName(), metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		actuator, _, _ := unstructured.NestedString(read.Object, "status", "actuator", "type")
		return actuator == string(want), fmt.Sprint(read.Object["status"]), nil
	})
}

// consumer is a Deployment without replicas, and policy the one for it.
func consumer() *unstructured.Unstructured {
	labels := map[string]any{"app": "payments"}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "payments", "namespace": "default"},
		"spec": map[string]any{
			"replicas": int64(0), "selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "none"}}},
			},
		},
	}}
}

func policy() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.KindAutoscalingPolicy,
		"metadata": map[string]any{"name": "payments", "namespace": "default"},
		"spec": map[string]any{
			"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "payments"},
			"minReplicas":    int64(1), "maxReplicas": int64(3),
			"subscription": map[string]any{
				"name": "payments", "type": "Shared", "topics": []any{"persistent://public/default/orders"},
			},
			"pulsar": map[string]any{"adminURL": "http://localhost:1"},
		},
	}}
}

// ofAnotherServer is an APIService as prometheus-adapter has it.
func ofAnotherServer() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1beta1.custom.metrics.k8s.io"},
		"spec": map[string]any{
			"group": "custom.metrics.k8s.io", "version": "v1beta1", "insecureSkipTLSVerify": true,
			"groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"service": map[string]any{"namespace": "monitoring", "name": "prometheus-adapter", "port": int64(443)},
		},
	}}
}

// insecure begins with the APIServices that trust an authority.
func (s *scene) insecure(t *testing.T) {
	s.adapters(t, "--serving-certificate=Insecure")
	s.await(t, "APIServices that verify nothing", func(ctx context.Context) (bool, string, error) {
		for _, version := range []string{"v1beta1", "v1beta2"} {
			service, err := s.dynamic.Resource(apiServices()).Get(ctx, version+".custom.metrics.k8s.io", metav1.GetOptions{})
			if err != nil {
				return false, "", err
			}
			insecure, _, _ := unstructured.NestedBool(service.Object, "spec", "insecureSkipTLSVerify")
			if bundle, _ := s.bundle(ctx, version); !insecure || bundle != "" {
				return false, version + " verifies", nil
			}
		}
		return true, "", nil
	})
	require.NoError(t, s.WaitMetricsAPI(t.Context()))
}
