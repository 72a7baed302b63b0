// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count requests by result, and measure their duration.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// MetricsConfig has the names of the metrics.
type MetricsConfig struct {
	// Subsystem of pulsar_autoscaler_<subsystem>_requests_total and _request_duration_seconds.
	Subsystem string
	// RequestsHelp and DurationHelp describe them.
	RequestsHelp, DurationHelp string
	// Labels of both; requests have Result in addition.
	Labels []string
	Result string
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer, config MetricsConfig) (*Metrics, error) {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pulsar_autoscaler_" + config.Subsystem + "_requests_total", Help: config.RequestsHelp,
		}, slices.Concat(config.Labels, []string{config.Result})),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pulsar_autoscaler_" + config.Subsystem + "_request_duration_seconds", Help: config.DurationHelp,
			Buckets: []float64{.00001, .00005, .0001, .0005, .001, .005, .01, .05, .1, .25, .5},
		}, config.Labels),
	}
	if err := errors.Join(registerer.Register(m.requests), registerer.Register(m.duration)); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	if len(config.Labels) == 0 {
		m.duration.WithLabelValues() // created at zero
	}
	return m, nil
}

// Requests returns the counter of requests with the result.
func (m *Metrics) Requests(result string, labels ...string) prometheus.Counter {
	return m.requests.WithLabelValues(slices.Concat(labels, []string{result})...)
}

// Answered counts a request with its duration.
func (m *Metrics) Answered(took time.Duration, result string, labels ...string) {
	m.Requests(result, labels...).Inc()
	m.duration.WithLabelValues(labels...).Observe(took.Seconds())
}
