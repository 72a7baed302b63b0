// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

const (
	headerTimeout = 5 * time.Second
	portTries     = 5
)

// metrics are those of a Java function instance (pulsar-functions/instance, FunctionStatsManager) without the 1-minute
// series and the *_created series of its Prometheus library.
type metrics struct {
	registry *prometheus.Registry

	received, processed, userExceptions, systemExceptions prometheus.Counter
	latency                                               prometheus.Summary
	lastInvocation                                        prometheus.Gauge
}

func newMetrics(in Instance) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	labels := prometheus.Labels{
		"tenant": in.Tenant, "namespace": in.Tenant + "/" + in.Namespace, "name": in.Name,
		"instance_id": strconv.Itoa(in.ID), "cluster": clusterName, "fqfn": in.FQFN(),
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "pulsar_function_" + name, Help: help, ConstLabels: labels})
		m.registry.MustRegister(c)
		return c
	}
	m.received = counter("received_total", "Total number of messages received from source.")
	m.processed = counter("processed_successfully_total", "Total number of messages processed successfully.")
	m.userExceptions = counter("user_exceptions_total", "Total number of user exceptions.")
	m.systemExceptions = counter("system_exceptions_total", "Total number of system exceptions.")
	m.latency = prometheus.NewSummary(prometheus.SummaryOpts{
		Name: "pulsar_function_process_latency_ms", Help: "Process latency in milliseconds.", ConstLabels: labels,
		Objectives: map[float64]float64{0.5: 0.05, 0.9: 0.01, 0.99: 0.01, 0.999: 0.01}, // quantiles that Java alone has
	})
	m.lastInvocation = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "pulsar_function_last_invocation", Help: "The timestamp of the last invocation of the function.",
		ConstLabels: labels,
	})
	m.registry.MustRegister(m.latency, m.lastInvocation)
	return m
}

// begin counts a message before it is processed.
func (m *metrics) begin(now time.Time) {
	m.received.Inc()
	m.lastInvocation.Set(float64(now.UnixMilli()))
}

// end counts a call. As in Java, a failed one has a latency too.
func (m *metrics) end(took time.Duration, failed bool) {
	m.latency.Observe(float64(took) / float64(time.Millisecond))
	if failed {
		m.userExceptions.Inc()
		return
	}
	m.processed.Inc()
}

// serve serves metrics in /metrics on a port of 127.0.0.1.
func serve(ctx context.Context, m *metrics) (*httptest.Server, error) {
	listener, err := listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("listening for the metrics of a replica: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	s := &httptest.Server{
		Listener: listener, Config: &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout},
	}
	s.Start()
	return s, nil
}

// listen takes a port below the ephemeral range, so that a restarted replica can listen on it again.
func listen(ctx context.Context) (listener net.Listener, err error) {
	var config net.ListenConfig
	for range portTries {
		port, portErr := proc.FreePort()
		if portErr != nil {
			return nil, portErr
		}
		if listener, err = config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return listener, nil
		}
	}
	return nil, err
}
