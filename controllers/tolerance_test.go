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
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	dropped := env.autoscaler() // as a server before 1.35 keeps it
	dropped.Spec.Behavior.ScaleUp.Tolerance, dropped.Spec.Behavior.ScaleDown.Tolerance = nil, nil
	require.NoError(t, env.client.Update(t.Context(), dropped))
	env.reconcile()
	status, _ := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/ToleranceUnsupported", status)
	require.NotContains(t, env.reconcile(), "apply", "the server drops it again")

	env.after(time.Hour)
	env.answer(700, 10_000)
	require.Contains(t, env.reconcile(), "apply")
	status, _ = env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/Applied", status)
	env.after(time.Hour)
	env.answer(700, 10_000)
	require.NotContains(t, env.reconcile(), "apply")
}
