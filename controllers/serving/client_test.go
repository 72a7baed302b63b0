// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// newClientBench is a keeper with KEDA as its client.
func newClientBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, owner())
	b.clients = clientSecret{Client{
		Secret: types.NamespacedName{Namespace: "keda", Name: "scaler"}, Owner: "owner",
	}, b.client}
	return b
}

func (b *bench) clientSecret(t *testing.T) map[string][]byte {
	t.Helper()
	return b.liveClientSecret(t).Data
}

func (b *bench) liveClientSecret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	require.NoError(t, b.client.Get(t.Context(), types.NamespacedName{Namespace: "keda", Name: "scaler"}, secret))
	return secret
}

// requireMutualTrust verifies both certificates like the other side.
func requireMutualTrust(t *testing.T, server, client map[string][]byte, now time.Time) {
	t.Helper()
	requireTrust(t, client[keyAuthorities], server, now)
	pair, err := tls.X509KeyPair(client[keyCertificate], client[keyPrivateKey])
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(server[keyAuthorities]))
	_, err = pair.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	require.NoError(t, err)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now})
	require.Error(t, err, "it is no certificate of a server")
}

func TestTheClientGetsACertificateOfItsOwn(t *testing.T) {
	b, now := newClientBench(t), time.Now()
	b.look(t, now)
	b.look(t, now)
	first := b.clientSecret(t)
	requireMutualTrust(t, b.secret(t), first, now)
	require.NotContains(t, first, keyAuthorityKey)
	b.applied = 0
	b.look(t, now)
	require.Zero(t, b.applied, "what is as it should be is not written")

	live := &corev1.Secret{}
	require.NoError(t, b.client.Get(t.Context(), b.keeper.secret, live))
	delete(live.Data, keyAuthorityKey)
	require.NoError(t, b.client.Update(t.Context(), live))
	for hour := range 4 {
		b.look(t, now.Add(time.Duration(hour)*time.Hour)) // a stage
		b.look(t, now.Add(time.Duration(hour)*time.Hour)) // and the client's Secret
		requireMutualTrust(t, b.secret(t), b.clientSecret(t), now)
	}
	require.Len(t, decode(b.secret(t)).authorities, 1)
	require.NotEqual(t, string(first[keyAuthorities]), string(b.clientSecret(t)[keyAuthorities]))
	require.NotEqual(t, string(first[keyCertificate]), string(b.clientSecret(t)[keyCertificate]))
}

func TestBothSecretsAreDeletedWithTheOwner(t *testing.T) {
	b, now := newClientBench(t), time.Now()
	b.look(t, now)
	b.look(t, now)
	servers := &corev1.Secret{}
	require.NoError(t, b.client.Get(t.Context(), b.keeper.secret, servers))
	for name, secret := range map[string]*corev1.Secret{"the server's": servers, "the client's": b.liveClientSecret(t)} {
		require.Len(t, secret.OwnerReferences, 1, name)
		require.Equal(t, types.UID("uid-of-owner"), secret.OwnerReferences[0].UID, name)
	}

	secret := b.liveClientSecret(t)
	secret.OwnerReferences = nil
	require.NoError(t, b.client.Update(t.Context(), secret))
	b.look(t, now)
	require.Len(t, b.liveClientSecret(t).OwnerReferences, 1, "a Secret of an older version gets its owner")
}

func TestTheServersCertificateAdmitsNoClient(t *testing.T) {
	c := decode(taken(t, nil, start(), addAuthority, issueCertificate))
	require.False(t, c.admits(c.leaf, start()))
	require.False(t, c.admits(nil, start()))
}

func TestReplicasWithoutALeaseComeToOneAuthority(t *testing.T) {
	b, now := newClientBench(t), time.Now()
	other := newKeeper(Config{Secret: b.keeper.secret, Host: host, Lifetime: time.Duration(month), Ready: b.keeper.ready},
		b.client)
	other.clients, other.owner = b.clients, b.owner
	for range 3 {
		b.look(t, now)
		require.NoError(t, other.sync(t.Context(), logr.Discard(), now))
	}
	requireMutualTrust(t, b.secret(t), b.clientSecret(t), now)
	require.Len(t, decode(b.secret(t)).authorities, 1)

	held := b.secret(t)
	b.applyFails = apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "scaler-serving", nil)
	b.look(t, now.Add(time.Duration(month)*3/4)) // a renewal by another replica
	require.Equal(t, held, b.secret(t))
}
