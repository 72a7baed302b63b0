// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// capabilityMetrics are in docs/metrics.md.
type capabilityMetrics struct {
	capability *prometheus.GaugeVec
	probes     *prometheus.CounterVec
	duration   prometheus.Histogram
}

func newCapabilityMetrics(registerer prometheus.Registerer) *capabilityMetrics {
	factory := promauto.With(registerer)
	return &capabilityMetrics{
		capability: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pulsar_autoscaler_cluster_capability",
			Help: "1 for a capability of the cluster, 0 for a missing one, none if unknown.",
		}, []string{"capability"}),
		probes: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "pulsar_autoscaler_cluster_probes_total",
			Help: "Dry runs of a HorizontalPodAutoscaler by result.",
		}, []string{"result"}),
		duration: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "pulsar_autoscaler_cluster_probe_duration_seconds",
			Help:    "Time of a dry run of a HorizontalPodAutoscaler.",
			Buckets: []float64{.005, .01, .05, .1, .5, 1, 5},
		}),
	}
}

func (m *capabilityMetrics) probed(took time.Duration, err error) {
	result := "answered"
	if err != nil {
		result = "error"
	}
	m.probes.WithLabelValues(result).Inc()
	m.duration.Observe(took.Seconds())
}

func (m *capabilityMetrics) show(k known) {
	for _, row := range k.rows() {
		switch {
		case row.can == nil:
			m.capability.DeleteLabelValues(row.capability)
		case *row.can:
			m.capability.WithLabelValues(row.capability).Set(1)
		default:
			m.capability.WithLabelValues(row.capability).Set(0)
		}
	}
}

type capabilityRow struct {
	capability, text string
	// can is nil while unknown.
	can *bool
}

// rows are all capabilities, always in the same order.
func (k known) rows() []capabilityRow {
	return []capabilityRow{
		{"custom_metrics", k.custom.String(), k.custom.ours()},
		{"external_metrics", k.external.String(), k.external.ours()},
		{"tolerance", yesOrNo(k.tolerance), k.tolerance},
		{"keda", yesOrNo(k.keda), k.keda},
	}
}

func yesOrNo(can *bool) string {
	switch {
	case can == nil:
		return "unknown"
	case *can:
		return "yes"
	default:
		return "no"
	}
}
