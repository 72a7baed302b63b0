// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// TLSContent is the server's TLS material, in PEM.
type TLSContent struct {
	// Certificate with its chain, and its Key.
	Certificate, Key []byte
	// VerifyClients requires client certificates that ClientCA has signed.
	VerifyClients bool
	ClientCA      []byte
}

// TLSFiles are PEM files of a TLSContent; ClientCA may be empty.
type TLSFiles struct{ Certificate, Key, ClientCA string }

// Read reads the files.
func (f TLSFiles) Read() (TLSContent, error) {
	content := TLSContent{VerifyClients: f.ClientCA != ""}
	for path, to := range map[string]*[]byte{
		f.Certificate: &content.Certificate, f.Key: &content.Key, f.ClientCA: &content.ClientCA,
	} {
		if path == "" {
			continue
		}
		read, err := os.ReadFile(path)
		if err != nil {
			return TLSContent{}, err
		}
		*to = read
	}
	return content, nil
}

// certificates reads the content at each handshake. It is safe for concurrent use.
type certificates struct {
	read   func() (TLSContent, error)
	logger *slog.Logger

	// mu guards all below.
	mu sync.Mutex
	// config is from the last good content.
	config *tls.Config
	// problem is why the content is not used, as logged; empty if it is.
	problem string
}

// newCertificates fails if the content cannot be used at the start.
func newCertificates(read func() (TLSContent, error), logger *slog.Logger) (*certificates, error) {
	config, err := load(read)
	if err != nil {
		return nil, err
	}
	return &certificates{read: read, logger: logger, config: config}, nil
}

// serverConfig reads at each handshake.
func (c *certificates) serverConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil },
	}
}

// current returns the configuration for the current content, or the last good one while the current one is unusable,
// such as half written.
func (c *certificates) current() *tls.Config {
	config, err := load(c.read)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		leaf, before := config.Certificates[0].Leaf, c.config.Certificates[0].Leaf
		if !leaf.Equal(before) || !config.ClientCAs.Equal(c.config.ClientCAs) {
			c.logger.Info("TLS certificates have changed", "certificateExpires", leaf.NotAfter.UTC().Format(time.RFC3339))
		}
		c.config, c.problem = config, ""
	case err.Error() != c.problem:
		c.problem = err.Error()
		c.logger.Error("TLS certificates cannot be used, using the last good ones", "error", err)
	}
	return c.config
}

// load disables session tickets: one would admit a client with an authority that is not trusted any more.
func load(read func() (TLSContent, error)) (*tls.Config, error) {
	content, err := read()
	if err != nil {
		return nil, fmt.Errorf("keda: TLS: %w", err)
	}
	pair, err := tls.X509KeyPair(content.Certificate, content.Key)
	if err != nil {
		return nil, fmt.Errorf("keda: TLS: certificate and key: %w", err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{pair},
		SessionTicketsDisabled: true,
	}
	if !content.VerifyClients {
		return config, nil
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(content.ClientCA) {
		return nil, errors.New("keda: TLS: the authorities of clients have no certificate in PEM")
	}
	return config, nil
}
