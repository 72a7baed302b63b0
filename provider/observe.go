// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type requestMetrics struct {
	requests *prometheus.CounterVec
	duration prometheus.Histogram
}

func newRequestMetrics(registerer prometheus.Registerer) (*requestMetrics, error) {
	m := &requestMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pulsar_autoscaler_provider_requests_total",
			Help: "Answered requests for custom and external metrics, by result.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "pulsar_autoscaler_provider_request_duration_seconds",
			Help:    "Time from a request for a metric to its answer.",
			Buckets: []float64{.00001, .00005, .0001, .0005, .001, .005, .01, .05, .1, .25, .5},
		}),
	}
	for _, collector := range []prometheus.Collector{m.requests, m.duration} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	for _, r := range table() {
		m.requests.WithLabelValues(r.result)
	}
	return m, nil
}

func (m *requestMetrics) observe(took time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = rowOf(err).result
	}
	m.requests.WithLabelValues(result).Inc()
	m.duration.Observe(took.Seconds())
}
