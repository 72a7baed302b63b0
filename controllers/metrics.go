// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// Results of a reconcile of a policy.
const (
	resultDecided  = "decided"
	resultHeld     = "held"
	resultUnknown  = "unknown"
	resultViolated = "violated"
	resultWaiting  = "waiting"
	resultPaused   = "paused"
	// resultSuspending and resultRestoring suspend other autoscalers for the policy, or restore them.
	resultSuspending = "suspending"
	resultRestoring  = "restoring"
	resultGone       = "gone"
	resultError      = "error"
)

// Results of an apply.
const (
	applyDone     = "applied"
	applyConflict = "conflict"
	applyRefused  = "refused"
	applyError    = "error"
)

// Results of writing a number of replicas.
const (
	scaleDone  = "scaled"
	scaleError = "error"
)

// Results of a status patch.
const (
	patchDone  = "patched"
	patchError = "error"
)

// controllerMetrics are listed in doc.go.
type controllerMetrics struct {
	reconciles    *prometheus.CounterVec
	applies       *prometheus.CounterVec
	scales        *prometheus.CounterVec
	statusPatches *prometheus.CounterVec
	actuation     *prometheus.HistogramVec
}

func newControllerMetrics(registerer prometheus.Registerer) (*controllerMetrics, error) {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"result"})
	}
	m := &controllerMetrics{
		reconciles: counter("pulsar_autoscaler_policy_reconciles_total", "Reconciles of policies by how they ended."),
		applies: counter("pulsar_autoscaler_policy_applies_total",
			"HorizontalPodAutoscalers and ScaledObjects applied by how it ended."),
		scales: counter("pulsar_autoscaler_policy_scales_total",
			"Numbers of replicas that the controller wrote itself by how it ended."),
		statusPatches: counter("pulsar_autoscaler_policy_status_patches_total", "Statuses written by how it ended."),
		actuation: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pulsar_autoscaler_actuation_seconds",
			Help: "Time from a decision for more replicas until as many run, by the actuator. A decision that another one " +
				"replaces meanwhile does not count.",
			Buckets: []float64{1, 2.5, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600},
		}, []string{"actuator"}),
	}
	for _, c := range []prometheus.Collector{m.reconciles, m.applies, m.scales, m.statusPatches, m.actuation} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	for _, by := range []v1alpha1.Actuator{v1alpha1.ActuatorHPA, v1alpha1.ActuatorKEDA, v1alpha1.ActuatorDirect} {
		m.actuation.WithLabelValues(string(by)) // shown from the start, so that rates count the first raise
	}
	return m, nil
}
