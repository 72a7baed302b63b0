// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/tls"
	"crypto/x509"
	"errors"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
)

// certificates are the part that distinguishes connections to brokers.
func (m material) certificates() material {
	only := material{roots: m.roots, insecure: m.insecure, anyName: m.anyName}
	if m.Method == authparams.TLS {
		only.Method, only.Certificate, only.Key = m.Method, m.Certificate, m.Key
	}
	return only
}

// tlsConfig is how brokers are verified, and the client certificate.
func (m material) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if m.roots != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(m.roots)) {
			return nil, errors.New("the certificates to trust have none: they must be PEM with at least one")
		}
	}
	switch {
	case m.insecure:
		config.InsecureSkipVerify = true
	case m.anyName:
		config.InsecureSkipVerify = true // verifyChain verifies all but the name
		config.VerifyConnection = verifyChain(config.RootCAs)
	}
	if m.Method != authparams.TLS {
		return config, nil
	}
	pair, err := tls.X509KeyPair([]byte(m.Certificate.Content), []byte(m.Key.Content))
	if err != nil {
		// the cause may show a part of the key
		return nil, errors.New("tlsCertFile and tlsKeyFile must be a certificate and its key in PEM")
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// verifyChain verifies everything about a certificate except its name.
func verifyChain(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		intermediates := x509.NewCertPool()
		for _, certificate := range state.PeerCertificates[1:] {
			intermediates.AddCert(certificate)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates})
		return err
	}
}

// issuerTLSConfig is how an OAuth2 issuer is verified, which is never skipped: by the authorities that the parameters
// name, else by the system's and those of the brokers' certificates.
func (m material) issuerTLSConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	pem := m.IssuerRoots.Content
	switch {
	case pem != "":
		config.RootCAs = x509.NewCertPool()
	case m.roots != "":
		pem = m.roots
		var err error
		if config.RootCAs, err = x509.SystemCertPool(); err != nil {
			config.RootCAs = x509.NewCertPool() // a machine without any
		}
	default:
		return config, nil
	}
	if !config.RootCAs.AppendCertsFromPEM([]byte(pem)) {
		return nil, errors.New("trustCertsFilePath has no certificate: it must be PEM with at least one")
	}
	return config, nil
}
