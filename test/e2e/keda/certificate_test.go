// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	// kedasSecret and scalersSecret are the defaults of --serving-certificate=Self.
	kedasSecret, scalersSecret = "keda/pulsar-autoscaler-scaler", "pulsar-autoscaler/scaler-serving"
	// authentication is the ClusterTriggerAuthentication with kedasSecret.
	authentication = "pulsar-autoscaler-scaler"
)

// TestAScalerThatOnlyKEDAMayCall creates its certificates itself, and KEDA follows a new authority.
func TestAScalerThatOnlyKEDAMayCall(t *testing.T) {
	t.Parallel()
	const name = "guarded"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 500 * time.Millisecond, StartDelay: time.Second})
	scaler := selfCertified(t)
	_, port, _ := strings.Cut(scaler.Address, ":")
	o := addScaledObject(t, stage.ScaledObjectConfig{
		Name: name, Scaler: scaler, PollingSeconds: 1, CooldownSeconds: 3,
		Metadata: map[string]string{
			"scalerAddress": "localhost:" + port, "target": "Function/" + name, "messagesPerReplica": fmt.Sprint(perReplica),
		},
		Edit: func(object *unstructured.Unstructured) {
			triggers, _, err := unstructured.NestedSlice(object.Object, "spec", "triggers")
			require.NoError(t, err)
			triggers[0].(map[string]any)["authenticationRef"] = map[string]any{
				"kind": "ClusterTriggerAuthentication", "name": authentication,
			}
			require.NoError(t, unstructured.SetNestedSlice(object.Object, triggers, "spec", "triggers"))
		},
	})
	f.AwaitReplicas(t, 0, 0) // KEDA calls it: the one replica at first might be done with the burst before
	require.NoError(t, f.PublishBurst(t.Context(), burst))
	f.AwaitReplicas(t, leastForBurst, 10)
	before := secretData(t, scalersSecret)
	require.ErrorContains(t, handshake(t, scaler, before[caKey]), "certificate required")

	require.NoError(t, scene.Client.Patch(t.Context(), newSecret(scalersSecret),
		client.RawPatch(types.JSONPatchType, []byte(`[{"op": "remove", "path": "/data/ca.key"}]`))))
	scene.Await(t, "both Secrets to have another authority alone", func(context.Context) (bool, string, error) {
		held := secretData(t, scalersSecret)
		authorities, err := certutil.ParseCertsPEM(held[caKey])
		if err != nil {
			return false, "", err
		}
		return len(authorities) == 1 && !bytes.Equal(held[caKey], before[caKey]) &&
			bytes.Equal(held[caKey], secretData(t, kedasSecret)[caKey]), fmt.Sprint(len(authorities), " authorities"), nil
	})
	f.AwaitReplicas(t, 0, 0)
	require.NoError(t, f.PublishBurst(t.Context(), burst))
	f.AwaitReplicas(t, leastForBurst, 10)
	events, err := o.Events(t.Context())
	require.NoError(t, err)
	require.NotContains(t, events, "KEDAScalerFailed", "KEDA reads its certificate again before it gives up")
}

// selfCertified starts a scaler that creates its certificates, and configures KEDA's Secret.
func selfCertified(t *testing.T) *stage.Scaler {
	t.Helper()
	require.NoError(t, scene.Cluster.ApplyFiles(t.Context(),
		filepath.Join("..", "..", "..", "deploy", "scaler", "certificate.yaml")))
	scaler, err := scene.AddScaler(context.WithoutCancel(t.Context()), "scaler-self", stage.ScalerConfig{Flags: []string{
		"--serving-certificate=Self", "--serving-certificate-host=localhost",
		"--serving-certificate-lifetime=3m", // authorities overlap for 15 s, in which a busy KEDA follows
		"--max-connection-age=2s",
	}})
	require.NoError(t, err)
	t.Cleanup(scaler.Kill)
	scene.Await(t, "KEDA's certificate", func(ctx context.Context) (bool, string, error) {
		err := scene.Client.Get(ctx, client.ObjectKeyFromObject(newSecret(kedasSecret)), newSecret(kedasSecret))
		return err == nil, fmt.Sprint(err), client.IgnoreNotFound(err)
	})
	_, secret, _ := strings.Cut(kedasSecret, "/")
	var refs []any
	for parameter, key := range map[string]string{
		"caCert": caKey, "tlsClientCert": corev1.TLSCertKey, "tlsClientKey": corev1.TLSPrivateKeyKey,
	} {
		refs = append(refs, map[string]any{"parameter": parameter, "name": secret, "key": key})
	}
	require.NoError(t, scene.Cluster.Apply(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "keda.sh/v1alpha1", "kind": "ClusterTriggerAuthentication",
		"metadata": map[string]any{"name": authentication}, "spec": map[string]any{"secretTargetRef": refs},
	}}))
	return scaler
}

const caKey = "ca.crt"

func newSecret(name string) *corev1.Secret {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name, _ = strings.Cut(name, "/")
	return secret
}

func secretData(t *testing.T, name string) map[string][]byte {
	t.Helper()
	secret := newSecret(name)
	require.NoError(t, scene.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	return secret.Data
}

// handshake connects as a client without a certificate.
func handshake(t *testing.T, scaler *stage.Scaler, authorities []byte) error {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(authorities))
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: "localhost", NextProtos: []string{"h2"},
	}}
	connection, err := dialer.DialContext(t.Context(), "tcp", scaler.Address)
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = connection.Read(make([]byte, 1)) // TLS 1.3 rejects clients after the handshake
	return err
}
