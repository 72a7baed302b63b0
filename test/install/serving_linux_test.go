// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	servingSecret = "adapter-serving-cert"
	// metricsPath is served by the adapter, through the aggregator.
	metricsPath = "/apis/custom.metrics.k8s.io/v1beta2"
)

func TestServingCertificatesOfUsers(t *testing.T) {
	s := openAll(t)
	for _, definition := range certManager() {
		require.NoError(t, s.Cluster.Apply(t.Context(), definition))
	}
	for name, test := range map[string]struct {
		mode   string
		verify func(s *scene, t *testing.T)
	}{
		"a Secret, whose authority is replaced": {"Secret", (*scene).rotates},
		"a Secret of cert-manager":              {"CertManager", (*scene).asksCertManager},
		"no certificate that is verified":       {"Insecure", (*scene).verifiesNothing},
	} {
		t.Run(name, func(t *testing.T) {
			s.createNamespace(t, namespace)
			s.writeServing(t, s.newServing(t, "first"))
			s.install(t, "servingCertificate.mode="+test.mode)
			s.awaitMetricsAPI(t)
			s.requireNamespacesGo(t, "with-a-certificate")
			test.verify(s, t)
			s.removeRelease(t)
			s.removeNamespace(t, namespace)
		})
	}
}

// serving is the content of a Secret with a certificate.
type serving struct{ authorities, certificate, key []byte }

// newServing returns a certificate of a new authority.
func (s *scene) newServing(t *testing.T, name string) serving {
	t.Helper()
	authority, err := s.Cluster.NewAuthority(fmt.Sprintf("%s-%d", name, time.Now().UnixNano()))
	require.NoError(t, err)
	certFile, keyFile, err := authority.Issue("adapter", "adapter."+namespace+".svc")
	require.NoError(t, err)
	read := func(path string) []byte {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return text
	}
	return serving{authorities: read(authority.CAFile()), certificate: read(certFile), key: read(keyFile)}
}

// writeServing writes the Secret as cert-manager or a user does.
func (s *scene) writeServing(t *testing.T, content serving) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": string(corev1.SecretTypeTLS),
		"metadata": map[string]any{"namespace": namespace, "name": servingSecret},
		"data": map[string]any{
			"ca.crt":  base64.StdEncoding.EncodeToString(content.authorities),
			"tls.crt": base64.StdEncoding.EncodeToString(content.certificate),
			"tls.key": base64.StdEncoding.EncodeToString(content.key),
		},
	}}
	require.NoError(t, s.Cluster.Apply(t.Context(), object))
}

// rotates replaces authority and certificate. No request fails meanwhile.
func (s *scene) rotates(t *testing.T) {
	stop := s.request(t, metricsPath)
	second := s.newServing(t, "second")
	first, err := s.client.CoreV1().Secrets(namespace).Get(t.Context(), servingSecret, metav1.GetOptions{})
	require.NoError(t, err)
	both := serving{
		authorities: append(bytes.Clone(second.authorities), first.Data["ca.crt"]...),
		certificate: first.Data["tls.crt"], key: first.Data["tls.key"],
	}
	s.writeServing(t, both)
	s.awaitBundle(t, both.authorities)
	both.certificate, both.key = second.certificate, second.key
	s.writeServing(t, both)
	s.awaitServed(t, second)
	s.writeServing(t, second)
	s.awaitBundle(t, second.authorities)
	require.Zero(t, stop().failed)
	s.awaitMetricsAPI(t)
}

// apiService returns the APIService of the newest version.
func (s *scene) apiService(ctx context.Context) (*unstructured.Unstructured, error) {
	service := &unstructured.Unstructured{}
	service.SetAPIVersion("apiregistration.k8s.io/v1")
	service.SetKind("APIService")
	err := s.Client.Get(ctx, client.ObjectKey{Name: "v1beta2.custom.metrics.k8s.io"}, service)
	return service, err
}

func (s *scene) awaitBundle(t *testing.T, want []byte) {
	t.Helper()
	s.Await(t, "the APIService to trust the authorities", func(ctx context.Context) (bool, string, error) {
		service, err := s.apiService(ctx)
		if err != nil {
			return false, "", err
		}
		text, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle")
		return text == base64.StdEncoding.EncodeToString(want), text, nil
	})
}

// awaitServed returns once every pod serves the certificate.
func (s *scene) awaitServed(t *testing.T, want serving) {
	t.Helper()
	s.Await(t, "all pods to serve the certificate", func(ctx context.Context) (bool, string, error) {
		pods, err := s.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		for i := range pods.Items {
			if served, err := servedBy(ctx, pods.Items[i].Status.PodIP); err != nil || !served.matches(want) {
				return false, fmt.Sprint(pods.Items[i].Name, err), nil
			}
		}
		return len(pods.Items) > 0, "no pods", nil
	})
}

// asksCertManager checks that the chart mounts a certificate of cert-manager.
func (s *scene) asksCertManager(t *testing.T) {
	wanted := &unstructured.Unstructured{}
	wanted.SetAPIVersion("cert-manager.io/v1")
	wanted.SetKind("Certificate")
	require.NoError(t, s.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "adapter-serving"}, wanted))
	secret, _, err := unstructured.NestedString(wanted.Object, "spec", "secretName")
	require.NoError(t, err)
	require.Equal(t, servingSecret, secret)
	names, _, err := unstructured.NestedStringSlice(wanted.Object, "spec", "dnsNames")
	require.NoError(t, err)
	require.Equal(t, []string{"adapter." + namespace + ".svc"}, names)
}

func (s *scene) verifiesNothing(t *testing.T) {
	service, err := s.apiService(t.Context())
	require.NoError(t, err)
	insecure, _, err := unstructured.NestedBool(service.Object, "spec", "insecureSkipTLSVerify")
	require.NoError(t, err)
	require.True(t, insecure)
}

// certManager returns the CRDs of cert-manager that the chart needs.
func certManager() (definitions []*unstructured.Unstructured) {
	const group = "cert-manager.io"
	for kind, plural := range map[string]string{"Certificate": "certificates", "Issuer": "issuers"} {
		definitions = append(definitions, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": plural + "." + group},
			"spec": map[string]any{
				"group": group, "scope": "Namespaced",
				"names": map[string]any{"kind": kind, "plural": plural, "listKind": kind + "List"},
				"versions": []any{map[string]any{
					"name": "v1", "served": true, "storage": true,
					"schema": map[string]any{"openAPIV3Schema": map[string]any{
						"type": "object", "x-kubernetes-preserve-unknown-fields": true,
					}},
				}},
			},
		}})
	}
	return definitions
}
