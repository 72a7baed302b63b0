// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	certutil "k8s.io/client-go/util/cert"
)

// selfSecret is the Secret of servingCertificate.mode Self.
const selfSecret = "adapter-serving"

// TestTheCertificateOfTheAdapterIsRenewed renews the certificate and then its authority in both replicas. No request
// fails meanwhile.
func TestTheCertificateOfTheAdapterIsRenewed(t *testing.T) {
	s := openAll(t)
	s.createNamespace(t, namespace)
	s.install(t, "servingCertificate.lifetime=1m")
	s.awaitMetricsAPI(t)
	stop := s.request(t, metricsPath)
	first := s.selfSecret(t)
	s.awaitRotated(t, "another certificate", func(held map[string][]byte) bool {
		return !bytes.Equal(held[corev1.TLSCertKey], first[corev1.TLSCertKey])
	})
	require.Equal(t, string(first["ca.crt"]), string(s.selfSecret(t)["ca.crt"]), "the authority lasts longer")

	_, err := s.client.CoreV1().Secrets(namespace).Patch(t.Context(), selfSecret, types.JSONPatchType,
		[]byte(`[{"op": "remove", "path": "/data/ca.key"}]`), metav1.PatchOptions{}) // as in docs/certificates.md
	require.NoError(t, err)
	s.awaitRotated(t, "another authority alone", func(held map[string][]byte) bool {
		authorities, err := certutil.ParseCertsPEM(held["ca.crt"])
		return err == nil && len(authorities) == 1 && !bytes.Equal(held["ca.crt"], first["ca.crt"])
	})
	require.Zero(t, stop().failed)
	pods, err := s.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, pods.Items, 2)
	for i := range pods.Items {
		require.Zero(t, pods.Items[i].Status.ContainerStatuses[0].RestartCount)
	}
	s.removeRelease(t)
	s.removeNamespace(t, namespace)
}

func (s *scene) selfSecret(t *testing.T) map[string][]byte {
	t.Helper()
	secret, err := s.client.CoreV1().Secrets(namespace).Get(t.Context(), selfSecret, metav1.GetOptions{})
	require.NoError(t, err)
	return secret.Data
}

// awaitRotated returns once the Secret is as wanted, the API server trusts its authorities, and every pod serves its
// certificate.
func (s *scene) awaitRotated(t *testing.T, what string, is func(held map[string][]byte) bool) {
	t.Helper()
	began := time.Now()
	s.Await(t, what, func(context.Context) (bool, string, error) {
		held := s.selfSecret(t)
		return is(held), string(held["ca.crt"]), nil
	})
	held := s.selfSecret(t)
	s.awaitBundle(t, held["ca.crt"])
	s.awaitServed(t, serving{certificate: held[corev1.TLSCertKey]})
	t.Logf("%s after %s", what, time.Since(began).Round(time.Second))
}
