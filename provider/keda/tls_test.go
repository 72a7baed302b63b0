// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return authority{certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue issues a certificate for the loopback interface.
func (a authority) issue(t *testing.T, serial int64) (certificate, key []byte) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.certificate, own.Public(), a.key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(own)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

// clientConfig trusts this authority and has a certificate of the other, if any.
func (a authority) clientConfig(t *testing.T, of *authority) *tls.Config {
	t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	config.RootCAs.AddCert(a.certificate)
	if of != nil {
		pair, err := tls.X509KeyPair(of.issue(t, 9))
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

func TestTLSFollowsItsFiles(t *testing.T) {
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	files := filesIn(t.TempDir())
	files.ClientCA = ""
	certificate, key := first.issue(t, 2)
	write(t, files, certificate, key, nil)
	s := serve(t, func(c *ServeConfig) { c.TLS = files.Read })
	s.change(func() { s.policies[policyKey()] = decidedPolicy(7, time.Now()) })
	require.NoError(t, s.call(t, first.clientConfig(t, nil)))
	require.Error(t, s.call(t, nil), "in the clear")
	old := s.dial(t, first.clientConfig(t, nil))
	_, err := pb.NewExternalScalerClient(old).IsActive(soon(t), ref("policy", "resize"))
	require.NoError(t, err)

	certificate, key = second.issue(t, 3)
	require.NoError(t, os.WriteFile(files.Certificate, certificate, 0o600)) // and the key not yet
	require.NoError(t, s.call(t, first.clientConfig(t, nil)), "half of a change has no effect")
	require.NoError(t, os.WriteFile(files.Key, key, 0o600))
	require.NoError(t, s.call(t, second.clientConfig(t, nil)))
	require.Error(t, s.call(t, first.clientConfig(t, nil)))
	_, err = pb.NewExternalScalerClient(old).IsActive(soon(t), ref("policy", "resize"))
	require.NoError(t, err, "connections that are open go on")

	require.NoError(t, os.Remove(files.Key))
	require.NoError(t, s.call(t, second.clientConfig(t, nil)), "the former key is used while there is none")
}

func TestClientsNeedACertificateOfTheirAuthority(t *testing.T) {
	servers, clients, others := newAuthority(t, "servers"), newAuthority(t, "clients"), newAuthority(t, "others")
	files := filesIn(t.TempDir())
	certificate, key := servers.issue(t, 2)
	write(t, files, certificate, key, clients.pem)
	s := serve(t, func(c *ServeConfig) { c.TLS = files.Read })
	s.change(func() { s.policies[policyKey()] = decidedPolicy(7, time.Now()) })
	require.NoError(t, s.call(t, servers.clientConfig(t, &clients)))
	require.Error(t, s.call(t, servers.clientConfig(t, nil)), "without a certificate")
	require.Error(t, s.call(t, servers.clientConfig(t, &others)), "with one of another authority")

	require.NoError(t, os.WriteFile(files.ClientCA, others.pem, 0o600))
	require.NoError(t, s.call(t, servers.clientConfig(t, &others)))
	require.Error(t, s.call(t, servers.clientConfig(t, &clients)), "trusted no more")
	require.NoError(t, os.WriteFile(files.ClientCA, []byte("no PEM"), 0o600))
	require.NoError(t, s.call(t, servers.clientConfig(t, &others)), "an invalid file has no effect")
	require.Error(t, s.call(t, servers.clientConfig(t, &clients)))
}
