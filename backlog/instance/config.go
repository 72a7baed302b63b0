// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const (
	// requestTimeout bounds one request, from connecting to the last byte: 100 times the response time of an instance that
	// is not busy.
	requestTimeout = 2 * time.Second
	// maxAnswerBytes bounds one answer: 200 times that of a Java instance, the rest is for user metrics. It bounds time,
	// not memory: lines are discarded as they are read.
	maxAnswerBytes = 16 << 20
	// atOnce bounds the concurrent requests to the instances of one workload; each takes 64 KiB. The poller bounds how
	// many workloads are read at once, and gives their namespaces turns: none waits here for the silent ones of another.
	atOnce = 4
)

// New returns a Scraper of the instances at these addresses, and registers its metrics.
func New(registerer prometheus.Registerer, addresses Addresses) *Scraper {
	factory := promauto.With(registerer)
	return &Scraper{
		addresses: addresses,
		client: &http.Client{
			// No proxy: instances are inside the cluster. No compression: it would use their CPU time.
			Transport: &http.Transport{
				DialContext:            (&net.Dialer{Timeout: requestTimeout}).DialContext,
				DisableKeepAlives:      true,
				DisableCompression:     true,
				MaxResponseHeaderBytes: 16 << 10,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		timeout:  requestTimeout,
		maxBytes: maxAnswerBytes,
		silent:   newSilences(),
		scrapes: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "pulsar_autoscaler_instance_scrapes_total",
			Help: "Requests to function instances for their metrics, by result.",
		}, []string{"result"}),
		duration: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "pulsar_autoscaler_instance_scrape_duration_seconds",
			Help:    "Time from connecting to a function instance to its decoded metrics.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
	}
}

func (s *Scraper) observe(took time.Duration, err error) {
	s.scrapes.WithLabelValues(resultLabel(err)).Inc()
	s.duration.Observe(took.Seconds())
}
