// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestToleranceIsAppliedAgainOnceKubernetesWasUpgraded(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(700)
	dropped := w.autoscaler() // as a server before 1.35 keeps it
	dropped.Spec.Behavior.ScaleUp.Tolerance, dropped.Spec.Behavior.ScaleDown.Tolerance = nil, nil
	require.NoError(t, w.client.Update(t.Context(), dropped))
	w.reconcile()
	status, _ := w.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/ToleranceUnsupported", status)
	require.NotContains(t, w.reconcile(), "apply", "the server drops it again")

	w.after(time.Hour)
	w.answer(700, 10_000)
	require.Contains(t, w.reconcile(), "apply")
	status, _ = w.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/Applied", status)
	w.after(time.Hour)
	w.answer(700, 10_000)
	require.NotContains(t, w.reconcile(), "apply")
}
