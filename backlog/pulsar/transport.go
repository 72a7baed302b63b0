// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"time"
)

// idleConnTimeout is below the 30 s after which a broker closes an idle connection (httpServerIdleTimeout), so that a
// request never meets one that is being closed.
const idleConnTimeout = 20 * time.Second

// newTransport has no proxy and asks for gzip itself: net/http then limits and decodes the answer transparently.
func newTransport(tlsConfig *tls.Config, config Config) *http.Transport {
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: config.RequestTimeout}).DialContext,
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    config.RequestTimeout,
		MaxConnsPerHost:        config.MaxConnsPerHost,
		MaxIdleConnsPerHost:    config.MaxConnsPerHost,
		IdleConnTimeout:        idleConnTimeout,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// newHTTPClient follows no redirect by itself.
func newHTTPClient(transport *http.Transport) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// tlsConfig is how brokers are checked and what they are shown.
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
		config.InsecureSkipVerify = true // verifyChain does all but the name
		config.VerifyConnection = verifyChain(config.RootCAs)
	}
	if m.method != methodTLS {
		return config, nil
	}
	pair, err := tls.X509KeyPair([]byte(m.certificate.content), []byte(m.key.content))
	if err != nil {
		// the cause may show a part of the key
		return nil, errors.New("tlsCertFile and tlsKeyFile must be a certificate and its key in PEM")
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// verifyChain checks everything about a certificate but its name.
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

// issuerTLSConfig is how an OAuth2 issuer is checked, which it always is: its certificate may be signed by whom the
// parameters name; else by one of the system's authorities or by one that signs the brokers' certificates.
func (m material) issuerTLSConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	pem := m.issuerRoots.content
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
