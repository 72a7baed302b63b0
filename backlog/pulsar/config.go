// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Defaults of Config.
const (
	DefaultRequestTimeout  = 3 * time.Second
	DefaultMaxAnswerBytes  = 64 << 20
	DefaultPartitionsTTL   = time.Minute
	DefaultMaxConnsPerHost = 16
)

// idleConnTimeout is below the 30 s after which a broker closes an idle connection (httpServerIdleTimeout), so that a
// request never meets one that is being closed.
const idleConnTimeout = 20 * time.Second

// Config says how Pulsar is reached. Zero values mean the defaults.
type Config struct {
	// Registerer takes the metrics; required.
	Registerer prometheus.Registerer
	// AllowedHosts are the hosts that may be called and be shown the token, as host or host:port. A host without a port
	// allows every port; "*." at the start stands for one or more labels: "*.pulsar.svc:8080". Empty allows nothing.
	AllowedHosts []string
	// RequestTimeout bounds one call with its redirects and its retry; 10 ms to 1 min, default 3 s.
	RequestTimeout time.Duration
	// MaxAnswerBytes bounds one answer after decompression; 1 KiB to 1 GiB, default 64 MiB.
	MaxAnswerBytes int64
	// PartitionsTTL is how long the number of partitions of a topic is believed; 1 s to 1 h, default 1 min.
	PartitionsTTL time.Duration
	// MaxConnsPerHost bounds the connections to one broker; 1 to 1024, default 16.
	MaxConnsPerHost int
	// Token is a literal token; at most one of Token and TokenFile.
	Token string
	// TokenFile holds the token. It is read for every request, so a rotated token is used at once.
	TokenFile string
	// CAFile has the PEM certificates that sign the brokers' certificates; default: the system's. Read once.
	CAFile string
}

// New returns a Source, or an error that names the wrong key, its value and its bound.
func New(config Config) (*Source, error) {
	config.setDefaults()
	if err := config.check(); err != nil {
		return nil, err
	}
	hosts, err := parseAllowedHosts(config.AllowedHosts)
	if err != nil {
		return nil, err
	}
	auth, err := newAuthenticator(config)
	if err != nil {
		return nil, err
	}
	transport, err := newTransport(config)
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(config.Registerer)
	if err != nil {
		return nil, err
	}
	return &Source{
		client: &client{
			http: &http.Client{
				Transport:     transport,
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			},
			hosts:          hosts,
			auth:           auth,
			metrics:        m,
			requestTimeout: config.RequestTimeout,
			maxAnswerBytes: config.MaxAnswerBytes,
		},
		counts: newPartitionCounts(config.PartitionsTTL),
		now:    time.Now,
	}, nil
}

func (c *Config) setDefaults() {
	c.RequestTimeout = cmp.Or(c.RequestTimeout, DefaultRequestTimeout)
	c.MaxAnswerBytes = cmp.Or(c.MaxAnswerBytes, DefaultMaxAnswerBytes)
	c.PartitionsTTL = cmp.Or(c.PartitionsTTL, DefaultPartitionsTTL)
	c.MaxConnsPerHost = cmp.Or(c.MaxConnsPerHost, DefaultMaxConnsPerHost)
}

func (c *Config) check() error {
	switch {
	case c.Registerer == nil:
		return errors.New("registerer is missing: metrics need one")
	case c.RequestTimeout < 10*time.Millisecond || c.RequestTimeout > time.Minute:
		return fmt.Errorf("requestTimeout is %s: it must be from 10ms to 1m", c.RequestTimeout)
	case c.MaxAnswerBytes < 1<<10 || c.MaxAnswerBytes > 1<<30:
		return fmt.Errorf("maxAnswerBytes is %d: it must be from 1024 to 1073741824", c.MaxAnswerBytes)
	case c.PartitionsTTL < time.Second || c.PartitionsTTL > time.Hour:
		return fmt.Errorf("partitionsTTL is %s: it must be from 1s to 1h", c.PartitionsTTL)
	case c.MaxConnsPerHost < 1 || c.MaxConnsPerHost > 1024:
		return fmt.Errorf("maxConnsPerHost is %d: it must be from 1 to 1024", c.MaxConnsPerHost)
	case c.Token != "" && c.TokenFile != "":
		return fmt.Errorf("token and tokenFile %q are both set: only one may be", c.TokenFile)
	}
	return nil
}

// newTransport has no proxy and asks for gzip itself: net/http then limits and decodes the answer transparently.
func newTransport(config Config) (*http.Transport, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if config.CAFile != "" {
		pem, err := os.ReadFile(config.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading caFile: %w", err)
		}
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("caFile %q has no certificate: it must be PEM with at least one", config.CAFile)
		}
	}
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: config.RequestTimeout}).DialContext,
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    config.RequestTimeout,
		MaxConnsPerHost:        config.MaxConnsPerHost,
		MaxIdleConnsPerHost:    config.MaxConnsPerHost,
		IdleConnTimeout:        idleConnTimeout,
		MaxResponseHeaderBytes: 64 << 10,
	}, nil
}
