// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

type requestMetrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	streams  *prometheus.GaugeVec
}

func newRequestMetrics(registerer prometheus.Registerer, held func() int) (*requestMetrics, error) {
	m := &requestMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pulsar_autoscaler_keda_requests_total",
			Help: "Requests of KEDA that were answered and streams that ended, by method and gRPC code.",
		}, []string{"method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pulsar_autoscaler_keda_request_duration_seconds",
			Help:    "Time from a request of KEDA to its answer, without streams.",
			Buckets: []float64{.00001, .00005, .0001, .0005, .001, .005, .01, .05, .1, .25, .5},
		}, []string{"method"}),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pulsar_autoscaler_keda_streams",
			Help: "Streams to KEDA that are open.",
		}, []string{"method"}),
	}
	collectors := []prometheus.Collector{
		m.requests, m.duration, m.streams,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "pulsar_autoscaler_keda_held_triggers",
			Help: "Triggers that are answered from what was known last.",
		}, func() float64 { return float64(held()) }),
	}
	for _, collector := range collectors {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}
