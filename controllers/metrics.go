// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Results of reconciles of a policy.
const (
	resultDecided  = "decided"
	resultHeld     = "held"
	resultUnknown  = "unknown"  // no reading
	resultViolated = "violated" // the user has to fix something
	resultWaiting  = "waiting"  // for the first response of Pulsar
	resultPaused   = "paused"
	// resultSuspending and resultRestoring: the reconcile suspended or restored another autoscaler.
	resultSuspending = "suspending"
	resultRestoring  = "restoring"
	// resultPending: a function worker has not answered yet.
	resultPending = "pending"
	// resultWoken: replicas were just written to a target at zero, and the report waits.
	resultWoken = "woken"
	// resultUnreported: decisions about other policies come before the report.
	resultUnreported = "unreported"
	resultGone       = "gone"
	resultError      = "error"
)

// Results of applies.
const (
	applyDone     = "applied"
	applyConflict = "conflict"
	applyRefused  = "refused"
	applyError    = "error"
)

// controllerMetrics are in docs/metrics.md. Durations of reconciles are controller-runtime's.
type controllerMetrics struct {
	reconciles    *prometheus.CounterVec
	applies       *prometheus.CounterVec
	scales        *prometheus.CounterVec
	statusPatches *prometheus.CounterVec
	actuation     *prometheus.HistogramVec
	lag           *prometheus.HistogramVec
}

func newControllerMetrics(registerer prometheus.Registerer) *controllerMetrics {
	factory := promauto.With(registerer)
	counter := func(name, help string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"result"})
	}
	buckets := []float64{1, 2.5, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600}
	m := &controllerMetrics{
		reconciles: counter("pulsar_autoscaler_policy_reconciles_total", "Reconciles of policies by result."),
		applies: counter("pulsar_autoscaler_policy_applies_total",
			"HorizontalPodAutoscalers and ScaledObjects applied by result."),
		scales: counter("pulsar_autoscaler_policy_scales_total",
			"Replicas written by the controller itself, by result."),
		statusPatches: counter("pulsar_autoscaler_policy_status_patches_total", "Statuses written, by result."),
		actuation: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pulsar_autoscaler_actuation_seconds",
			Help: "Time from a scale-up decision until its replicas run, by actuator. A decision that another one " +
				"replaces meanwhile does not count.",
			Buckets: buckets,
		}, []string{"actuator"}),
		lag: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pulsar_autoscaler_actuation_lag_seconds",
			Help: "Time from a decision until HorizontalPodAutoscalers, of policies or of KEDA, set spec.replicas, by " +
				"actuator. Changes from and to zero, and errors that an autoscaler reports, do not count.",
			Buckets: buckets,
		}, []string{"actuator"}),
	}
	for _, by := range []v1alpha1.Actuator{v1alpha1.ActuatorHPA, v1alpha1.ActuatorKEDA, v1alpha1.ActuatorDirect} {
		m.actuation.WithLabelValues(string(by)) // created at zero, so that rate() counts the first scale-up
	}
	return m
}

func resultOf(observed plan.Observed, decision *policy.Decision, result plan.Result) string {
	switch {
	case observed.Paused() != "":
		return resultPaused
	case observed.Violation != nil || result.Violation != nil:
		return resultViolated
	case observed.Unknown != nil:
		return resultUnknown
	case decision.Hold != nil:
		return resultHeld
	default:
		return resultDecided
	}
}
