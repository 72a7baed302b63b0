// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCertificatesAreGoodForTheirUseOnly(t *testing.T) {
	ca, err := NewAuthority("ca")
	require.NoError(t, err)
	other, err := NewAuthority("ca")
	require.NoError(t, err)
	server, err := ca.Server("adapter.metrics.svc", "10.0.0.1")
	require.NoError(t, err)
	client, err := ca.Client("alice", "admins")
	require.NoError(t, err)

	verify := func(from *Authority, pair Pair, host string, use x509.ExtKeyUsage) error {
		loaded, err := tls.X509KeyPair([]byte(pair.Certificate), []byte(pair.Key))
		require.NoError(t, err)
		_, err = loaded.Leaf.Verify(x509.VerifyOptions{Roots: from.Pool(), DNSName: host, KeyUsages: []x509.ExtKeyUsage{use}})
		return err
	}
	for _, host := range []string{"adapter.metrics.svc", "10.0.0.1", "localhost", "127.0.0.1"} {
		require.NoError(t, verify(ca, server, host, x509.ExtKeyUsageServerAuth))
	}
	require.NoError(t, verify(ca, client, "", x509.ExtKeyUsageClientAuth))
	require.Error(t, verify(ca, server, "adapter.other.svc", x509.ExtKeyUsageServerAuth))
	require.Error(t, verify(other, server, "localhost", x509.ExtKeyUsageServerAuth),
		"the same name is not the same authority")
	require.Error(t, verify(ca, server, "", x509.ExtKeyUsageClientAuth))
	require.Error(t, verify(ca, client, "", x509.ExtKeyUsageServerAuth))

	peer, err := ca.Peer("scaler", "scaler.autoscaler.svc")
	require.NoError(t, err)
	require.NoError(t, verify(ca, peer, "scaler.autoscaler.svc", x509.ExtKeyUsageServerAuth))
	require.NoError(t, verify(ca, peer, "", x509.ExtKeyUsageClientAuth))
}
