// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// authSecret is a Secret in Function Mesh's form.
func authSecret(name, params string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: name},
		StringData: map[string]string{
			"clientAuthenticationPlugin":     "org.apache.pulsar.client.impl.auth.AuthenticationToken",
			"clientAuthenticationParameters": params,
		},
	}
}

// addLocked adds a Function on the secured broker. Its Secret has the name.
func addLocked(t *testing.T, s *secured, name, secret string) {
	t.Helper()
	require.NoError(t, s.CreateSubscription(t.Context(), securedTopic, "public/default/"+name, broker.Latest))
	addWithoutReplicas(t, mesh.KindFunction, name, s.Broker, map[string]any{
		"input": map[string]any{"topics": []any{securedTopic}}, "pulsar": map[string]any{"authSecret": secret},
	})
}

// testFunctionCredentials reads with the credentials of Functions and policies: the adapter has none.
func testFunctionCredentials(t *testing.T, s *secured) {
	const good, unread, ungranted = "consume-token", "in-pod-token", "newcomer-token"
	create(t, authSecret(good, "token:"+s.token(t, "consume", time.Hour)))
	create(t, authSecret(unread, "file:///etc/pulsar/token"))
	create(t, authSecret(ungranted, "token:"+s.token(t, "newcomer", time.Hour)))
	for name, f := range map[string]struct{ secret, own string }{
		"granted":    {secret: good},
		"absent":     {secret: "later-token"},
		"in-pod":     {secret: unread},
		"ungranted":  {secret: ungranted},
		"overruled":  {secret: unread, own: good},
		"overruling": {secret: good, own: ungranted},
	} {
		addLocked(t, s, name, f.secret)
		var connection *v1alpha1.PulsarConnection
		if f.own != "" {
			connection = &v1alpha1.PulsarConnection{AuthSecret: f.own}
		}
		advise(t, name, connection)
	}
	for _, name := range []string{"granted", "overruled"} {
		scene.AwaitConditions(t, name, "BacklogKnown=True/Measured")
	}
	said := scene.AwaitConditions(t, "absent", "TargetFound=False/TargetInvalid")
	require.Equal(t, "Secret later-token, which spec.pulsar.authSecret names, does not exist: create it", said)
	said = scene.AwaitConditions(t, "in-pod", "TargetFound=False/TargetInvalid")
	require.Equal(t,
		"the credentials are in /etc/pulsar/token inside of the pods, which the adapter cannot read: put their "+
			"content into the Secret, "+
			"or set spec.pulsar.authSecret of the policy, or give the adapter credentials of its own, such as "+
			"--pulsar-token-file (value pulsar.credentials of the chart)", said)
	const missing = "grant consume on namespace private/work to the role of the credentials"
	for _, name := range []string{"ungranted", "overruling"} {
		said = scene.AwaitConditions(t, name, "BacklogKnown=False/PermissionMissing")
		require.Contains(t, said, missing)
	}
	create(t, authSecret("later-token", s.token(t, "consume", time.Hour)))
	s.demand(t, http.MethodPost, "/admin/v2/namespaces/private/work/permissions/newcomer", `["consume"]`)
	for _, name := range []string{"absent", "ungranted", "overruling"} {
		scene.AwaitConditions(t, name, "BacklogKnown=True/Measured")
	}
}
