// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// TLSFiles are PEM files. They are read again at each handshake, so that a change of a mounted Secret is followed.
type TLSFiles struct {
	// Certificate with its chain, and its Key. Both, or neither for connections in the clear.
	Certificate, Key string
	// ClientCA has the authorities that clients must have a certificate of; empty to ask clients for none.
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

// contents are what the files say.
type contents struct{ certificate, key, clientCA []byte }

func (c contents) equal(other contents) bool {
	return bytes.Equal(c.certificate, other.certificate) && bytes.Equal(c.key, other.key) &&
		bytes.Equal(c.clientCA, other.clientCA)
}

// keeper keeps the configuration of TLS in step with the files. It is safe for concurrent use.
type keeper struct {
	files  TLSFiles
	logger *slog.Logger

	// mu guards all below.
	mu     sync.Mutex
	config *tls.Config
	// used are the contents of config, and refused the last ones that were no good.
	used, refused contents
	// unreadable says that the files could not be read the last time.
	unreadable bool
}

// newKeeper fails when the files are no good to begin with.
func newKeeper(files TLSFiles, logger *slog.Logger) (*keeper, error) {
	read, err := files.read()
	if err != nil {
		return nil, err
	}
	config, _, err := files.parse(read)
	if err != nil {
		return nil, err
	}
	return &keeper{files: files, logger: logger, config: config, used: read}, nil
}

// serverConfig asks the keeper at each handshake.
func (k *keeper) serverConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return k.current(), nil },
	}
}

// current returns the configuration by the files as they are now; while they are no good, such as half written, as they
// were.
func (k *keeper) current() *tls.Config {
	read, err := k.files.read()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil:
		if !k.unreadable {
			k.logger.Error("files of TLS cannot be read, the former ones are used", "error", err)
		}
		k.unreadable = true
		return k.config
	case read.equal(k.used), read.equal(k.refused):
		k.unreadable = false
		return k.config
	}
	k.unreadable = false
	config, expires, err := k.files.parse(read)
	if err != nil {
		k.refused = read
		k.logger.Error("files of TLS are no good, the former ones are used", "error", err)
		return k.config
	}
	k.config, k.used, k.refused = config, read, contents{}
	k.logger.Info("files of TLS have changed", "certificateExpires", expires.UTC().Format(time.RFC3339))
	return k.config
}

func (f TLSFiles) read() (read contents, err error) {
	for _, file := range []struct {
		path string
		to   *[]byte
	}{{f.Certificate, &read.certificate}, {f.Key, &read.key}, {f.ClientCA, &read.clientCA}} {
		if file.path == "" {
			continue
		}
		if *file.to, err = os.ReadFile(file.path); err != nil {
			return contents{}, fmt.Errorf("keda: TLS: %w", err)
		}
	}
	return read, nil
}

// parse makes a configuration. There are no session tickets: one would let in a client with an authority that is
// trusted no more.
func (f TLSFiles) parse(read contents) (config *tls.Config, expires time.Time, err error) {
	pair, err := tls.X509KeyPair(read.certificate, read.key)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("keda: TLS: %s and %s: %w", f.Certificate, f.Key, err)
	}
	config = &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{pair},
		SessionTicketsDisabled: true,
	}
	if f.ClientCA != "" {
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM(read.clientCA) {
			return nil, time.Time{}, fmt.Errorf("keda: TLS: %s has no certificate in PEM", f.ClientCA)
		}
	}
	return config, pair.Leaf.NotAfter, nil
}
