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

// TLSFiles are PEM files. They are read again at each handshake, so that a change of a mounted Secret takes effect.
type TLSFiles struct {
	// Certificate with its chain, and its Key. Both, or neither for connections in the clear.
	Certificate, Key string
	// ClientCA has the authorities that must sign clients' certificates; empty for clients without one.
	ClientCA string
}

// used says whether connections are encrypted.
func (f TLSFiles) used() bool { return f.Certificate != "" }

func (f TLSFiles) check() error {
	switch {
	case (f.Certificate == "") != (f.Key == ""):
		return errors.New("keda: TLS: Certificate and Key must be set together")
	case f.ClientCA != "" && !f.used():
		return errors.New("keda: TLS: ClientCA is set, which needs Certificate and Key too")
	}
	return nil
}

// certificates follow the files. It is safe for concurrent use.
type certificates struct {
	files  TLSFiles
	logger *slog.Logger

	// mu guards all below.
	mu sync.Mutex
	// config is that of the last good files.
	config *tls.Config
	// problem is why the files are not used now, as it was logged; empty while they are.
	problem string
}

// newCertificates fails when the files cannot be used from the start.
func newCertificates(files TLSFiles, logger *slog.Logger) (*certificates, error) {
	config, err := files.load()
	if err != nil {
		return nil, err
	}
	return &certificates{files: files, logger: logger, config: config}, nil
}

// serverConfig reads the files at each handshake.
func (c *certificates) serverConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil },
	}
}

// current returns the configuration by the files as they are now, or were last while they cannot be used, such as half
// written.
func (c *certificates) current() *tls.Config {
	config, err := c.files.load()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		leaf, before := config.Certificates[0].Leaf, c.config.Certificates[0].Leaf
		if !leaf.Equal(before) || !config.ClientCAs.Equal(c.config.ClientCAs) {
			c.logger.Info("TLS files have changed", "certificateExpires", leaf.NotAfter.UTC().Format(time.RFC3339))
		}
		c.config, c.problem = config, ""
	case err.Error() != c.problem:
		c.problem = err.Error()
		c.logger.Error("TLS files cannot be used, using the last good ones", "error", err)
	}
	return c.config
}

// load reads the files. There are no session tickets: one would let in a client with an authority that is not trusted
// any more.
func (f TLSFiles) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return nil, fmt.Errorf("keda: TLS: %s and %s: %w", f.Certificate, f.Key, err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{pair},
		SessionTicketsDisabled: true,
	}
	if f.ClientCA == "" {
		return config, nil
	}
	authorities, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("keda: TLS: %w", err)
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("keda: TLS: %s has no certificate in PEM", f.ClientCA)
	}
	return config, nil
}
