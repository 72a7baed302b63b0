// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestCredentialsOfPodsAreCopied(t *testing.T) {
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "pulsar", Name: name}, Data: data}
	}
	good := map[string][]byte{keyPlugin: []byte("token"), keyParams: []byte("token:a")}
	kube := clusterWith(t, secret("good", map[string][]byte{
		keyPlugin: good[keyPlugin], keyParams: good[keyParams], "other": []byte("stays"),
	}), secret("half", map[string][]byte{keyPlugin: []byte("token")}))
	for name, want := range map[string]string{
		"": "", "pulsar/good": "", "pulsar/half": "lacks clientAuthenticationParameters",
		"pulsar/missing": "reading pulsar.authSecret pulsar/missing",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(Config{Kube: kube, Scenario: sampleScenario(t)})
			r.Scenario.Pulsar.AuthSecret = name
			err := r.copySecret(t.Context())
			if want != "" {
				require.ErrorContains(t, err, want)
				return
			}
			require.NoError(t, err)
			var copied corev1.Secret
			err = kube.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: copiedSecret}, &copied)
			require.NoError(t, client.IgnoreNotFound(err))
			if name != "" {
				require.Equal(t, good, copied.Data)
			}
		})
	}
}
