// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/api"
	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Defaults of Config.
const (
	DefaultTimeout        = 10 * time.Second
	DefaultMaxAnswerBytes = 32 << 20
)

// Config says which Prometheus is asked and for what. Zero values mean the defaults.
type Config struct {
	// Registerer takes the metrics; required.
	Registerer prometheus.Registerer
	// URL of Prometheus, such as http://prometheus.monitoring:9090, with a path where it is served below one; required.
	URL string
	// Selectors tell the series of a cluster from those of others, by its admin URL: label matchers such as
	// cluster="eu",job="pulsar". Needed when Prometheus knows more than one Pulsar cluster, and when we do: once a second
	// one without a selector is asked for, FetchBulk fails for both.
	Selectors map[string]string
	// TokenFile holds a bearer token; read for every query.
	TokenFile string
	// CAFile has the PEM certificates that sign Prometheus's; default: the system's. Read once.
	CAFile string
	// Timeout bounds one query; 100 ms to 2 min, default 10 s.
	Timeout time.Duration
	// MaxAnswerBytes bounds one answer after decompression; 1 KiB to 1 GiB, default 32 MiB.
	MaxAnswerBytes int64
	// Wanted says which topics to keep, by names without partition suffixes; nil for all.
	Wanted func(backlog.Topic) bool
}

// New returns a Source, or an error that names the wrong key, its value and its bound.
func New(config Config) (*Source, error) {
	config.Timeout = cmp.Or(config.Timeout, DefaultTimeout)
	config.MaxAnswerBytes = cmp.Or(config.MaxAnswerBytes, DefaultMaxAnswerBytes)
	if config.Wanted == nil {
		config.Wanted = func(backlog.Topic) bool { return true }
	}
	base, err := config.check()
	if err != nil {
		return nil, err
	}
	transport, err := newTransport(config)
	if err != nil {
		return nil, err
	}
	client, err := api.NewClient(api.Config{Address: config.URL, Client: &http.Client{
		Transport: &transport,
		// A redirect could show the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return nil, fmt.Errorf("url is %q: it must be like http://prometheus.monitoring:9090", base.Redacted())
	}
	m, err := newMetrics(config.Registerer)
	if err != nil {
		return nil, err
	}
	return &Source{
		config: config, host: base.Host, api: apiv1.NewAPI(client), metrics: m, transport: transport.next,
		now: time.Now,
	}, nil
}

func (c *Config) check() (*url.URL, error) {
	base, err := url.Parse(c.URL)
	if err != nil { // the cause repeats the text, and there may be credentials in it
		return nil, errors.New("url cannot be read: it must be like http://prometheus.monitoring:9090")
	}
	switch {
	case c.Registerer == nil:
		return nil, errors.New("registerer is missing: metrics need one")
	case (base.Scheme != "http" && base.Scheme != "https") || base.Hostname() == "" || base.User != nil ||
		base.RawQuery != "" || base.Fragment != "":
		return nil, fmt.Errorf(
			"url is %q: it must be like http://prometheus.monitoring:9090, with no credentials and no query", base.Redacted())
	case c.Timeout < 100*time.Millisecond || c.Timeout > 2*time.Minute:
		return nil, fmt.Errorf("timeout is %s: it must be from 100ms to 2m", c.Timeout)
	case c.MaxAnswerBytes < 1<<10 || c.MaxAnswerBytes > 1<<30:
		return nil, fmt.Errorf("maxAnswerBytes is %d: it must be from 1024 to 1073741824", c.MaxAnswerBytes)
	}
	return base, nil
}
