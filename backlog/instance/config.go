// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// DefaultRequestTimeout is 100 times the response time of an instance that is not busy.
	DefaultRequestTimeout = 2 * time.Second
	// maxAnswerBytes bounds one answer: 200 times that of a Java instance, the rest is for user metrics. It bounds time,
	// not memory: lines are discarded as they are read.
	maxAnswerBytes = 16 << 20
	// atOnce bounds the concurrent requests to the instances of one workload; each takes 64 KiB. The poller bounds how
	// many workloads are read at once, and gives their namespaces turns: none waits here for the silent ones of another.
	atOnce = 4
)

// Config configures the Scraper. Zero values mean the defaults.
type Config struct {
	// Registerer registers the metrics; required.
	Registerer prometheus.Registerer
	// Addresses returns the instances; required.
	Addresses Addresses
	// RequestTimeout bounds one request, from connecting to the last byte; 10 ms to 1 min, default 2 s.
	RequestTimeout time.Duration
}

// New returns a Scraper, or an error that names the wrong key, its value and its bound.
func New(config Config) (*Scraper, error) {
	config.RequestTimeout = cmp.Or(config.RequestTimeout, DefaultRequestTimeout)
	if err := config.check(); err != nil {
		return nil, err
	}
	m, err := newMetrics(config.Registerer)
	if err != nil {
		return nil, err
	}
	return &Scraper{
		addresses: config.Addresses,
		client: &http.Client{
			// No proxy: instances are inside the cluster. No compression: it would use their CPU time.
			Transport: &http.Transport{
				DialContext:            (&net.Dialer{Timeout: config.RequestTimeout}).DialContext,
				DisableKeepAlives:      true,
				DisableCompression:     true,
				MaxResponseHeaderBytes: 16 << 10,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		metrics:  m,
		timeout:  config.RequestTimeout,
		maxBytes: maxAnswerBytes,
		silent:   newSilences(),
	}, nil
}

func (c *Config) check() error {
	switch {
	case c.Registerer == nil:
		return errors.New("registerer is missing: metrics need one")
	case c.Addresses == nil:
		return errors.New("addresses is missing: it must know the instances of a workload")
	case c.RequestTimeout < 10*time.Millisecond || c.RequestTimeout > time.Minute:
		return fmt.Errorf("requestTimeout is %s: it must be from 10ms to 1m", c.RequestTimeout)
	}
	return nil
}
