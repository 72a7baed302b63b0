// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	scrapes  *prometheus.CounterVec
	duration prometheus.Histogram
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		scrapes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pulsar_autoscaler_instance_scrapes_total",
			Help: "Requests to function instances for their metrics, by result.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "pulsar_autoscaler_instance_scrape_duration_seconds",
			Help:    "Time from connecting to a function instance to its decoded metrics.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
	}
	if err := errors.Join(registerer.Register(m.scrapes), registerer.Register(m.duration)); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return m, nil
}

func (m *metrics) observe(took time.Duration, err error) {
	m.scrapes.WithLabelValues(resultLabel(err)).Inc()
	m.duration.Observe(took.Seconds())
}
