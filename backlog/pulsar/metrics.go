// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/reader"
)

type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	wait     prometheus.Histogram

	issuerRequests *prometheus.CounterVec
	issuerDuration *prometheus.HistogramVec
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	factory := promauto.With(registerer)
	return &metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "pulsar_autoscaler_source_requests_total",
			Help: "Requests to Pulsar, by call and result. Call subscribe goes to brokers.",
		}, []string{"call", "result"}),
		duration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pulsar_autoscaler_source_request_duration_seconds",
			Help:    "Time from sending a request to Pulsar's admin service to its decoded answer.",
			Buckets: []float64{.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"call"}),
		wait: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "pulsar_autoscaler_source_wait_seconds",
			Help:    "Time that requests to Pulsar's admin service spend in the queue of their host.",
			Buckets: []float64{.001, .005, .025, .1, .25, .5, 1, 2.5, 5},
		}),
		issuerRequests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "pulsar_autoscaler_source_oauth2_requests_total",
			Help: "Requests to OAuth2 issuers, by call and result.",
		}, []string{"call", "result"}),
		issuerDuration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pulsar_autoscaler_source_oauth2_request_duration_seconds",
			Help:    "Time from sending a request to an OAuth2 issuer to its decoded answer.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"call"}),
	}
}

// registerGauges registers the state of the limiter, the breaker and the readers, and the memory of decoding.
func registerGauges(registerer prometheus.Registerer, c *hosts, decoding *atomic.Int64, readers *reader.Readers) {
	for _, gauge := range []struct {
		name, help string
		read       func() int
	}{
		{
			"pulsar_autoscaler_source_requests_in_flight", "Requests to Pulsar's admin service in flight.",
			func() int { return int(c.inFlight.Load()) },
		},
		{
			"pulsar_autoscaler_source_requests_waiting", "Requests to Pulsar's admin service in the queue of their host.",
			func() int { return int(c.waiting.Load()) },
		},
		{
			"pulsar_autoscaler_source_hosts_backing_off", "Pulsar hosts with an open circuit breaker.",
			c.openHosts,
		},
		{
			"pulsar_autoscaler_decoding_bytes", "Estimated memory of Pulsar's answers that are being decoded.",
			func() int { return int(decoding.Load()) },
		},
		{
			"pulsar_autoscaler_readers",
			"Partitions of topics without replicas of which the broker reports the next message.",
			readers.Subscribed,
		},
	} {
		read := func() float64 { return float64(gauge.read()) }
		promauto.With(registerer).NewGaugeFunc(prometheus.GaugeOpts{Name: gauge.name, Help: gauge.help}, read)
	}
}

func (m *metrics) observe(call callName, took time.Duration, err error) {
	m.requests.WithLabelValues(call.label(), resultLabel(err)).Inc()
	m.duration.WithLabelValues(call.label()).Observe(took.Seconds())
}

// refuse counts a request that was not sent.
func (m *metrics) refuse(call callName, err error) {
	m.requests.WithLabelValues(call.label(), resultLabel(err)).Inc()
}

func (m *metrics) observeIssuer(call string, took time.Duration, err error) {
	m.issuerRequests.WithLabelValues(call, resultLabel(err)).Inc()
	m.issuerDuration.WithLabelValues(call).Observe(took.Seconds())
}

func resultLabel(err error) string {
	switch {
	case err == nil, errors.Is(err, errNoChange):
		return "ok"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, errHeldBack):
		return "held_back"
	case errors.Is(err, errMoved):
		return "moved"
	default:
		return backlog.ReasonLabel(err)
	}
}
