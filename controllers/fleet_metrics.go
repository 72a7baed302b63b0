// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of removing a child.
const (
	removeDone  = "removed"
	removeError = "remove_error"
)

// fleetMetrics are listed in doc.go.
type fleetMetrics struct {
	reconciles    *prometheus.CounterVec
	children      *prometheus.CounterVec
	statusPatches *prometheus.CounterVec
}

func newFleetMetrics(registerer prometheus.Registerer) (*fleetMetrics, error) {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"result"})
	}
	m := &fleetMetrics{
		reconciles: counter("pulsar_autoscaler_fleet_reconciles_total",
			"Reconciles of policies with a targetSelector by how they ended."),
		children: counter("pulsar_autoscaler_fleet_policies_total",
			"Policies applied and removed for a targetSelector by how it ended."),
		statusPatches: counter("pulsar_autoscaler_fleet_status_patches_total",
			"Statuses of policies with a targetSelector written by how it ended."),
	}
	for _, c := range []prometheus.Collector{m.reconciles, m.children, m.statusPatches} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}
