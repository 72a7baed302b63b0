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
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(700)
	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MaxReplicas = 30 })
	w.applyFails = apierrors.NewInternalError(errors.New(`failed calling webhook "guard.example.com": connection refused`))
	w.after(testInterval)
	w.answer(1_500, 12_000)
	_, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.ErrorIs(t, err, w.applyFails, "it is tried again")
	require.Equal(t, int32(15), *w.policy().Status.DesiredReplicas, "the autoscaler that runs still asks for the number")
	require.Equal(t, w.policy().Generation, w.policy().Status.ObservedGeneration)
	status, message := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/ApplyFailed", status)
	require.Contains(t, message, "guard.example.com")

	w.applyFails = nil
	require.Equal(t, []string{"apply", "patch status"}, w.reconcile())
	status, _ = w.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/Applied", status)
}

func TestAChangeOfThePolicyDoesNotWaitForPulsar(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(700)
	w.store.Untrack(owner(fixture.Key()))
	w.restart()
	require.Empty(t, w.reconcile(), "what stands in the status stays in force while the first answer is under way")

	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeRecommend })
	w.reconcile()
	require.Nil(t, w.autoscaler())
	require.Equal(t, w.policy().Generation, w.policy().Status.ObservedGeneration)
	require.Equal(t, int32(7), *w.policy().Status.DesiredReplicas)
	require.Empty(t, w.reconcile())
}
