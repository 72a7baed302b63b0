// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestDecisionsGoOnWhileAnAutoscalerCannotBeWritten(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MaxReplicas = 30 })
	env.applyFails = apierrors.NewInternalError(
		errors.New(`failed calling webhook "guard.example.com": connection refused`))
	env.after(testInterval)
	env.answer(1_500, 12_000)
	_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.ErrorIs(t, err, env.applyFails, "it is tried again")
	require.Equal(t, int32(15), *env.policy().Status.DesiredReplicas, "the autoscaler that runs still asks for the number")
	require.Equal(t, env.policy().Generation, env.policy().Status.ObservedGeneration)
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/ApplyFailed", status)
	require.Contains(t, message, "guard.example.com")

	env.applyFails = nil
	require.Equal(t, []string{"apply", "patch status"}, env.reconcile())
	status, _ = env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/Applied", status)
}

// TestAWakeDoesNotWaitForAnAutoscalerThatCannotBeWritten: the one that runs does nothing while there are no replicas.
func TestAWakeDoesNotWaitForAnAutoscalerThatCannotBeWritten(t *testing.T) {
	resource := schema.GroupResource{Resource: "horizontalpodautoscalers"}
	for name, fails := range map[string]error{
		"a webhook is down": apierrors.NewInternalError(errors.New("failed calling webhook")),
		"it is refused":     apierrors.NewForbidden(resource, "resize", nil),
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, idleFunction(), idlePolicy(v1alpha1.ActuatorHPA), fixture.ConfigMap())
			env.firstDecision(0)
			env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MaxReplicas = 30 })
			env.applyFails = fails
			reconcile := func() {
				_, _ = env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
			}
			reconcile()
			require.Zero(t, env.replicas())
			env.after(testInterval)
			env.answer(2, 10_002)
			reconcile() // while the next apply is paused
			require.Equal(t, int64(1), env.replicas())
		})
	}
}

func TestAFailedReconcileIsReportedOnce(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	decidedAt := env.policy().Status.Decision.Time
	fail := func() []string {
		env.writes = nil
		_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
		require.ErrorIs(t, err, env.readFails)
		return env.writes
	}
	for i := range 12 {
		env.after(testInterval)
		env.readFails = apierrors.NewForbidden(schema.GroupResource{Resource: "functions"}, "resize",
			fmt.Errorf("attempt %d", i))
		want := []string(nil)
		if i == 0 {
			want = []string{"patch status"}
		}
		require.Equal(t, want, fail(), "pass %d", i)
	}
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/ReconcileFailed", status)
	require.Contains(t, message, "retrying after an error: finding the target: reading Function media/resize: ")
	require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas)
	require.Equal(t, decidedAt, env.policy().Status.Decision.Time, "nothing was decided since")

	env.readFails = nil
	env.answer(700, 10_000)
	require.Equal(t, []string{"patch status"}, env.reconcile())
	status, _ = env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/Pending", status, "as before: no HorizontalPodAutoscaler runs here")
}

func TestAProcessThatEndsReportsNoFailure(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env.readFails, env.writes = ctx.Err(), nil
	_, err := env.reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: fixture.Key()})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, env.writes)
}

func TestAChangeOfThePolicyDoesNotWaitForPulsar(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	env.store.Untrack(owner(fixture.Key()))
	env.restart()
	require.Empty(t, env.reconcile(), "the status stays unchanged until the first response")

	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeRecommend })
	env.reconcile()
	require.Nil(t, env.autoscaler())
	require.Equal(t, env.policy().Generation, env.policy().Status.ObservedGeneration)
	require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas)
	require.Empty(t, env.reconcile())
}
