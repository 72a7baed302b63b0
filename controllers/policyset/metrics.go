// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policyset

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Results of a reconcile.
const (
	resultReconciled = "reconciled"
	resultViolated   = "violated"
	resultWaiting    = "waiting" // to see its own writes
	resultGone       = "gone"
	resultError      = "error"
)

// Results of an apply and of a delete.
const (
	applyDone     = "applied"
	applyConflict = "conflict"
	applyRefused  = "refused"
	applyError    = "error"
	deleteDone    = "deleted"
	deleteError   = "delete_error"
)

// Results of a status patch.
const (
	patchDone  = "patched"
	patchError = "error"
)

// setMetrics are in docs/metrics.md.
type setMetrics struct {
	reconciles    *prometheus.CounterVec
	policies      *prometheus.CounterVec
	statusPatches *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer) *setMetrics {
	counter := func(name, help string) *prometheus.CounterVec {
		return promauto.With(registerer).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"result"})
	}
	return &setMetrics{
		reconciles: counter("pulsar_autoscaler_policy_set_reconciles_total",
			"Reconciles of AutoscalingPolicySets by result."),
		policies: counter("pulsar_autoscaler_policy_set_policies_total",
			"Applies and deletes of policies of AutoscalingPolicySets by result."),
		statusPatches: counter("pulsar_autoscaler_policy_set_status_patches_total",
			"Status patches of AutoscalingPolicySets by result."),
	}
}
