// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

func TestRegistriesAreMerged(t *testing.T) {
	first, second := prometheus.NewRegistry(), prometheus.NewRegistry()
	add := func(registry *prometheus.Registry, help string, values map[string]float64) {
		counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests_total", Help: help}, []string{"code"})
		for code, value := range values {
			counter.WithLabelValues(code).Add(value)
		}
		registry.MustRegister(counter)
	}
	add(first, "Ours.", map[string]float64{"200": 1, "500": 2})
	add(second, "Theirs.", map[string]float64{"500": 9, "404": 3})
	first.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "depth", Help: "A gauge."}))
	second.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "depth", Help: "A counter."}))
	second.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "alone", Help: "Only theirs."}))
	require.NoError(t, testutil.GatherAndCompare(firstWins{first, second}, strings.NewReader(`
# HELP alone Only theirs.
# TYPE alone gauge
alone 0
# HELP depth A gauge.
# TYPE depth gauge
depth 0
# HELP requests_total Ours.
# TYPE requests_total counter
requests_total{code="200"} 1
requests_total{code="404"} 3
requests_total{code="500"} 2
`)))
	own, err := first.Gather()
	require.NoError(t, err)
	require.Len(t, own[1].GetMetric(), 2, "merging changed what a registry holds")
}

func TestOneBrokenRegistryDoesNotHideTheOthers(t *testing.T) {
	good := prometheus.NewRegistry()
	good.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "alone", Help: "Good."}))
	broken := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return nil, errors.New("broken") })
	families, err := firstWins{broken, good}.Gather()
	require.EqualError(t, err, "broken")
	require.Len(t, families, 1)
}

func TestLogLines(t *testing.T) {
	tests := map[string]struct {
		level, format string
		want          string
	}{
		"JSON by default":       {"info", "json", `"level":"INFO","msg":"something changed","replicas":3}`},
		"text for people":       {"info", "text", `level=INFO msg="something changed" replicas=3`},
		"quiet below its level": {"error", "json", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			o.LogLevel, o.LogFormat = tt.level, tt.format
			var out bytes.Buffer
			logger, err := newLogger(o, &out)
			require.NoError(t, err)
			logger.Info("something changed", slog.Int("replicas", 3))
			if tt.want == "" {
				require.Empty(t, out.String())
			} else {
				require.Contains(t, out.String(), tt.want)
			}
		})
	}
}
