// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestDecisionsGoOnWhileAnAutoscalerCannotBeWritten(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.settle(700)
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

func TestAChangeOfThePolicyDoesNotWaitForPulsar(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.settle(700)
	env.store.Untrack(owner(fixture.Key()))
	env.restart()
	require.Empty(t, env.reconcile(), "what stands in the status stays in force while the first answer is under way")

	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeRecommend })
	env.reconcile()
	require.Nil(t, env.autoscaler())
	require.Equal(t, env.policy().Generation, env.policy().Status.ObservedGeneration)
	require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas)
	require.Empty(t, env.reconcile())
}
