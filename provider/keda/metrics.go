// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/answer"
)

type metrics struct {
	*answer.Metrics
	streams *prometheus.GaugeVec
}

func newMetrics(registerer prometheus.Registerer, held func() int) (*metrics, error) {
	requests, err := answer.NewMetrics(registerer, answer.MetricsConfig{
		Subsystem:    "keda",
		RequestsHelp: "Completed requests and ended streams of KEDA, by method and gRPC code.",
		DurationHelp: "Time from a request of KEDA to its response, without streams.",
		Labels:       []string{"method"},
		Result:       "code",
	})
	if err != nil {
		return nil, err
	}
	streams := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "pulsar_autoscaler_keda_streams", Help: "Open streams to KEDA.",
	}, []string{"method"})
	heldTriggers := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pulsar_autoscaler_keda_held_triggers", Help: "Unknown triggers, with replicas held.",
	}, func() float64 { return float64(held()) })
	if err := errors.Join(registerer.Register(streams), registerer.Register(heldTriggers)); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return &metrics{requests, streams}, nil
}
