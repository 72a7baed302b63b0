// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

type metrics struct {
	requests *prometheus.CounterVec
	duration prometheus.Histogram
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pulsar_autoscaler_prometheus_requests_total",
			Help: "Queries to Prometheus, by result.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "pulsar_autoscaler_prometheus_request_duration_seconds",
			Help:    "Time from sending a query to Prometheus to its decoded answer.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 120},
		}),
	}
	for _, collector := range []prometheus.Collector{m.requests, m.duration} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) observe(took time.Duration, err error) {
	m.requests.WithLabelValues(resultLabel(err)).Inc()
	m.duration.Observe(took.Seconds())
}

func resultLabel(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, backlog.ErrUnauthenticated):
		return "unauthenticated"
	case errors.Is(err, backlog.ErrForbidden):
		return "forbidden"
	case errors.Is(err, backlog.ErrUnreachable):
		return "unreachable"
	case errors.Is(err, backlog.ErrUnavailable):
		return "unavailable"
	default:
		return "protocol"
	}
}
