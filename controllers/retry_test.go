// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// passes reconciles every second and counts the writes to the Function.
func (env *testEnv) passes(seconds int) (patches int) {
	env.t.Helper()
	for range seconds {
		env.after(time.Second)
		env.answer(300, 10_000)
		env.writes = nil
		_, _ = env.reconciler.Reconcile(env.t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
		for _, write := range env.writes {
			if write == "patch *unstructured.Unstructured" {
				patches++
			}
		}
	}
	return patches
}

func TestAFailingTakeOverIsRetriedAtAPace(t *testing.T) {
	env := takingOver(t)
	env.reconcile()
	env.patchFails = errors.New("boom")
	require.LessOrEqual(t, env.passes(60), 6)
	status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "False/TakeOverFailed", status)
	require.Contains(t, message, "boom")
	require.Equal(t, 5, env.passes(300), "once a minute")

	env.patchFails = nil
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MaxReplicas++ })
	require.Equal(t, 1, env.passes(1), "a changed policy does not wait")
	env.until("our autoscaler", env.scaling)
}

func TestAFailingRestoreIsRetriedAtAPace(t *testing.T) {
	env := takingOver(t)
	env.reconcile()
	env.until("our autoscaler", env.scaling)
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.ConflictPolicy = v1alpha1.ConflictRefuse })
	env.patchFails = errors.New("boom")
	require.LessOrEqual(t, env.passes(60), 6)
	status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "False/Restoring", status)
	require.Contains(t, message, "boom")
	env.patchFails = nil
	env.passes(61)
	require.Equal(t, int64(5), env.maxReplicas())
	require.Nil(t, env.policy().Status.TakenOver)
}
