// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/identity"
)

func newAuthority(t *testing.T, name string) *identity.Authority {
	t.Helper()
	authority, err := identity.NewAuthority(name)
	require.NoError(t, err)
	return authority
}

// issue issues a certificate for the loopback interface.
func issue(t *testing.T, by *identity.Authority) (certificate, key []byte) {
	t.Helper()
	pair, err := by.Peer("test")
	require.NoError(t, err)
	return []byte(pair.Certificate), []byte(pair.Key)
}

// trusting is a client that trusts an authority and has a certificate of the other, if any.
func trusting(t *testing.T, authority, of *identity.Authority) *tls.Config {
	t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authority.Pool()}
	if of != nil {
		pair, err := tls.X509KeyPair(issue(t, of))
		require.NoError(t, err)
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

// write writes the TLS files.
func write(t *testing.T, files TLSFiles, certificate, key, clientCA []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(files.Certificate, certificate, 0o600))
	require.NoError(t, os.WriteFile(files.Key, key, 0o600))
	if files.ClientCA != "" {
		require.NoError(t, os.WriteFile(files.ClientCA, clientCA, 0o600))
	}
}

func filesIn(dir string) TLSFiles {
	return TLSFiles{
		Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"),
		ClientCA: filepath.Join(dir, "ca.crt"),
	}
}

// call calls the server once over a new connection.
func (s *servedScaler) call(t *testing.T, config *tls.Config) error {
	t.Helper()
	_, err := pb.NewExternalScalerClient(s.dial(t, config)).IsActive(soon(t), ref("policy", "resize"))
	return err
}

func TestOneFileMayHaveCertificateAndKey(t *testing.T) {
	certificate, key := issue(t, newAuthority(t, "one"))
	path := filepath.Join(t.TempDir(), "tls.pem")
	require.NoError(t, os.WriteFile(path, slices.Concat(certificate, key), 0o600))
	_, err := load(TLSFiles{Certificate: path, Key: path}.Read)
	require.NoError(t, err)
}

func TestTLSFollowsItsFiles(t *testing.T) {
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	files := filesIn(t.TempDir())
	files.ClientCA = ""
	certificate, key := issue(t, first)
	write(t, files, certificate, key, nil)
	s := serve(t, func(c *ServeConfig) { c.TLS = files.Read })
	s.change(func() { s.policies[policyKey()] = decidedPolicy(7, time.Now()) })
	require.NoError(t, s.call(t, trusting(t, first, nil)))
	require.Error(t, s.call(t, nil), "in the clear")
	old := s.dial(t, trusting(t, first, nil))
	_, err := pb.NewExternalScalerClient(old).IsActive(soon(t), ref("policy", "resize"))
	require.NoError(t, err)

	certificate, key = issue(t, second)
	require.NoError(t, os.WriteFile(files.Certificate, certificate, 0o600)) // and the key not yet
	require.NoError(t, s.call(t, trusting(t, first, nil)), "half of a change has no effect")
	require.NoError(t, os.WriteFile(files.Key, key, 0o600))
	require.NoError(t, s.call(t, trusting(t, second, nil)))
	require.Error(t, s.call(t, trusting(t, first, nil)))
	_, err = pb.NewExternalScalerClient(old).IsActive(soon(t), ref("policy", "resize"))
	require.NoError(t, err, "connections that are open go on")

	require.NoError(t, os.Remove(files.Key))
	require.NoError(t, s.call(t, trusting(t, second, nil)), "the former key is used while there is none")
}

func TestClientsNeedACertificateOfTheirAuthority(t *testing.T) {
	servers, clients, others := newAuthority(t, "servers"), newAuthority(t, "clients"), newAuthority(t, "others")
	files := filesIn(t.TempDir())
	certificate, key := issue(t, servers)
	write(t, files, certificate, key, []byte(clients.PEM()))
	s := serve(t, func(c *ServeConfig) { c.TLS = files.Read })
	s.change(func() { s.policies[policyKey()] = decidedPolicy(7, time.Now()) })
	require.NoError(t, s.call(t, trusting(t, servers, clients)))
	require.Error(t, s.call(t, trusting(t, servers, nil)), "without a certificate")
	require.Error(t, s.call(t, trusting(t, servers, others)), "with one of another authority")

	require.NoError(t, os.WriteFile(files.ClientCA, []byte(others.PEM()), 0o600))
	require.NoError(t, s.call(t, trusting(t, servers, others)))
	require.Error(t, s.call(t, trusting(t, servers, clients)), "trusted no more")
	require.NoError(t, os.WriteFile(files.ClientCA, []byte("no PEM"), 0o600))
	require.NoError(t, s.call(t, trusting(t, servers, others)), "an invalid file has no effect")
	require.Error(t, s.call(t, trusting(t, servers, clients)))
}
