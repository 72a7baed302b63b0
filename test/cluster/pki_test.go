// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCertificatesAreGoodForTheirUseOnly(t *testing.T) {
	ca, err := newAuthority("ca")
	require.NoError(t, err)
	other, err := newAuthority("ca")
	require.NoError(t, err)
	server, err := ca.server("adapter.metrics.svc")
	require.NoError(t, err)
	client, err := ca.client("alice", "admins")
	require.NoError(t, err)

	verify := func(from *authority, pair certificate, host string, use x509.ExtKeyUsage) error {
		loaded, err := tls.X509KeyPair(pair.certPEM, pair.keyPEM)
		require.NoError(t, err)
		_, err = loaded.Leaf.Verify(x509.VerifyOptions{Roots: from.pool(), DNSName: host, KeyUsages: []x509.ExtKeyUsage{use}})
		return err
	}
	for _, host := range []string{"adapter.metrics.svc", "localhost", "127.0.0.1"} {
		require.NoError(t, verify(ca, server, host, x509.ExtKeyUsageServerAuth))
	}
	require.NoError(t, verify(ca, client, "", x509.ExtKeyUsageClientAuth))
	require.Error(t, verify(ca, server, "adapter.other.svc", x509.ExtKeyUsageServerAuth))
	require.Error(t, verify(other, server, "localhost", x509.ExtKeyUsageServerAuth),
		"the same name is not the same authority")
	require.Error(t, verify(ca, server, "", x509.ExtKeyUsageClientAuth))
	require.Error(t, verify(ca, client, "", x509.ExtKeyUsageServerAuth))

	peer, err := ca.peer("scaler", "scaler.autoscaler.svc")
	require.NoError(t, err)
	require.NoError(t, verify(ca, peer, "scaler.autoscaler.svc", x509.ExtKeyUsageServerAuth))
	require.NoError(t, verify(ca, peer, "", x509.ExtKeyUsageClientAuth))
}
