// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/reader"
)

// Defaults of Config.
const (
	DefaultRequestTimeout  = 3 * time.Second
	DefaultMaxConnsPerHost = 16
	// DefaultMaxRequestsPerSecondPerHost allows 10,000 topics every 10 s through one address, such as the Service of all
	// brokers. A broker with its own limit (httpRequestsLimitEnabled) allows 100.
	DefaultMaxRequestsPerSecondPerHost = 1000
)

const (
	// maxAnswerBytes bounds one answer after decompression.
	maxAnswerBytes = 64 << 20
	// partitionsTTL is how long the number of partitions of a topic is used after the last good answer, and maxCounts
	// bounds the topics for which it is kept.
	partitionsTTL = time.Minute
	maxCounts     = 500_000
)

// Config configures the connection to Pulsar. Zero values mean the defaults.
type Config struct {
	// Registerer registers the metrics; required.
	Registerer prometheus.Registerer
	// AllowedHosts are the hosts that may be called and get the token, as host, host:port or a URL. A host without a port
	// allows every port, a URL only its scheme and port; "*." before a name means one or more labels: "*.pulsar.svc:8080",
	// "https://*.pulsar.svc:8443". Without a scheme the program's own credentials are only sent over https. Empty allows
	// no host. Redirects may also lead to names below the host of an allowed admin URL.
	AllowedHosts []string
	// RequestTimeout bounds one call with its redirects and its retry; 10 ms to 1 min, default 3 s.
	RequestTimeout time.Duration
	// MaxConnsPerHost bounds the connections to one broker; 1 to 1024, default 16.
	MaxConnsPerHost int
	// MaxRequestsPerSecondPerHost bounds the requests to one broker, with a burst of one second; 1 to 100000, default
	// 1000.
	MaxRequestsPerSecondPerHost int
	// Own are the program's own credentials, and CAFileFailed is that of auth.Config.
	Own          auth.Own
	CAFileFailed func(error)
	// Credentials returns the credentials that a backlog.Cluster names by Access; nil if no cluster names any.
	Credentials auth.Source
	// AllowedIssuers are the URLs of the OAuth2 issuers that named credentials may get tokens from. The issuer of
	// Own is always allowed.
	AllowedIssuers []string

	// dial opens connections; nil for the network's.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// New returns a Source, or an error that names the invalid key, its value and its bound. It registers the metrics.
func New(config Config) (*Source, error) {
	config.setDefaults()
	if err := config.check(); err != nil {
		return nil, err
	}
	hosts, err := parseAllowedHosts(config.AllowedHosts)
	if err != nil {
		return nil, err
	}
	m := newMetrics(config.Registerer)
	c := newHosts(config.MaxConnsPerHost, config.MaxRequestsPerSecondPerHost, m.wait)
	decoding, readers := &atomic.Int64{}, reader.New(config.dialer(), config.RequestTimeout)
	registerGauges(config.Registerer, c, decoding, readers)
	credentials, err := auth.New(config.auth(c, m))
	if err != nil {
		return nil, err
	}
	return &Source{
		client: &client{
			hosts:          hosts,
			authenticates:  config.Own.TokenFile != "" || config.Own.Plugin != "",
			credentials:    credentials,
			chain:          c, // shared by all credentials
			owners:         backlog.NewCache[ownedTopic, *url.URL](ownersTTL, maxOwners),
			metrics:        m,
			requestTimeout: config.RequestTimeout,
			maxAnswerBytes: maxAnswerBytes,
			budget:         newBudget(),
			decoding:       decoding,
			decoders:       newDecoders(),
			lookups:        newHosts(max(1, config.MaxConnsPerHost/4), config.MaxRequestsPerSecondPerHost, nil),
		},
		counts: backlog.NewCache[backlog.Topic, int](partitionsTTL, maxCounts),
		ages:   newHosts(max(1, config.MaxConnsPerHost/2), config.MaxRequestsPerSecondPerHost, nil),
		now:    time.Now, readers: readers,
	}, nil
}

func (c *Config) auth(chain *hosts, m *metrics) auth.Config {
	return auth.Config{
		Own:            c.Own,
		CAFileFailed:   c.CAFileFailed,
		Named:          c.Credentials,
		AllowedIssuers: c.AllowedIssuers,
		Transport:      func(tlsConfig *tls.Config) *http.Transport { return newTransport(tlsConfig, *c) },
		Chain:          chain.over,
		IssuerTimeout:  c.RequestTimeout,
		Observe:        m.observeIssuer,
		Explain:        func(err error) string { return transportCause(err, 0) },
	}
}

func (c *Config) dialer() reader.Dial {
	if c.dial != nil {
		return c.dial
	}
	return (&net.Dialer{Timeout: c.RequestTimeout}).DialContext
}

func (c *Config) setDefaults() {
	c.RequestTimeout = cmp.Or(c.RequestTimeout, DefaultRequestTimeout)
	c.MaxConnsPerHost = cmp.Or(c.MaxConnsPerHost, DefaultMaxConnsPerHost)
	c.MaxRequestsPerSecondPerHost = cmp.Or(c.MaxRequestsPerSecondPerHost, DefaultMaxRequestsPerSecondPerHost)
}

func (c *Config) check() error {
	switch {
	case c.Registerer == nil:
		return errors.New("registerer is missing: metrics need one")
	case c.RequestTimeout < 10*time.Millisecond || c.RequestTimeout > time.Minute:
		return fmt.Errorf("requestTimeout is %s: it must be from 10ms to 1m", c.RequestTimeout)
	case c.MaxConnsPerHost < 1 || c.MaxConnsPerHost > 1024:
		return fmt.Errorf("maxConnsPerHost is %d: it must be from 1 to 1024", c.MaxConnsPerHost)
	case c.MaxRequestsPerSecondPerHost < 1 || c.MaxRequestsPerSecondPerHost > 100_000:
		return fmt.Errorf("maxRequestsPerSecondPerHost is %d: it must be from 1 to 100000", c.MaxRequestsPerSecondPerHost)
	case c.Own.Plugin != "" && c.Own.TokenFile != "":
		return fmt.Errorf("authPlugin %q is set together with tokenFile: only one may be", c.Own.Plugin)
	case c.Own.Plugin == "" && c.Own.ParamsFile != "":
		return errors.New("authParamsFile is set without authPlugin: it must be one of token, tls, basic, oauth2")
	}
	return nil
}
