// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package registries

import (
	"errors"
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
	require.NoError(t, testutil.GatherAndCompare(FirstWins{first, second}, strings.NewReader(`
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
	families, err := FirstWins{broken, good}.Gather()
	require.EqualError(t, err, "broken")
	require.Len(t, families, 1)
}
