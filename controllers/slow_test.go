// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// goOn reconciles a poll later, with so many messages in the backlog.
func (env *testEnv) goOn(waiting int64) []string {
	env.t.Helper()
	env.after(testInterval)
	env.answer(waiting, 10_000)
	return env.reconcile()
}

func TestAutoWritesItselfWhileItsAutoscalerLags(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	for range 4 {
		require.NotContains(t, env.goOn(700), "scale 7", "an autoscaler has four syncs the first time")
	}
	require.Equal(t, []string{"delete " + plan.AutoscalerName("resize"), "scale 7", "patch status"}, env.goOn(700))
	status, _ := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/ActuationSlow", status)
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status, message)
	returns := env.policy().Status.Actuator.DirectUntil
	require.True(t, returns.After(env.now.Add(time.Hour-time.Second)))

	env.restart()
	require.Equal(t, []string{"scale 9"}, onlyWrites(env.goOn(900)), "another process knows")
	require.Nil(t, env.autoscaler())
	require.Equal(t, v1alpha1.ActuatorDirect, env.policy().Status.Actuator.Type)

	env.now = returns.Add(-testInterval)
	require.Equal(t, []string{"apply"}, onlyWrites(env.goOn(1100)), "the autoscaler scales again")
	require.Equal(t, int64(9), env.replicas())
	require.Equal(t, &v1alpha1.ActuatorStatus{
		Type: v1alpha1.ActuatorHPA, Reason: "custom.metrics.k8s.io is served by the adapter",
	}, env.policy().Status.Actuator)
	for range 2 {
		require.Empty(t, onlyWrites(env.goOn(1100)), "it has four syncs again")
	}
}

func TestAnAutoscalerThatAUserCappedStays(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	hpa := env.autoscaler()
	hpa.Spec.MaxReplicas = 5
	require.NoError(t, env.client.Update(t.Context(), hpa))
	env.applyFails = apierrors.NewForbidden(autoscalingv2.Resource("horizontalpodautoscalers"), hpa.Name, nil)
	for range 20 {
		env.goOn(700)
	}
	require.NotNil(t, env.autoscaler())
	require.Equal(t, int32(5), env.autoscaler().Spec.MaxReplicas)
	require.Empty(t, env.written)
	status, _ := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/ApplyRefused", status)
}

func TestAutoCreatesNoAutoscalerWhileManyLag(t *testing.T) {
	env := newTestEnv(t, fixture.ConfigMap())
	var keys []types.NamespacedName
	add := func() {
		p, function := numbered(len(keys))
		require.NoError(t, env.client.Create(t.Context(), function))
		require.NoError(t, env.client.Create(t.Context(), p))
		keys = append(keys, client.ObjectKeyFromObject(p))
	}
	goOn := func(some []types.NamespacedName) {
		for _, key := range some {
			env.store.Record(backlog.Topic{Cluster: fixture.Cluster(), Name: "persistent://public/default/" + key.Name},
				fixture.Sample(env.now, 700, 10_000))
			_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			require.NoError(t, err)
		}
	}
	chosen := func(number int) v1alpha1.Actuator {
		var p v1alpha1.AutoscalingPolicy
		require.NoError(t, env.client.Get(t.Context(), keys[number], &p))
		return p.Status.Actuator.Type
	}
	for range plan.ManyLag {
		add()
	}
	for range 7 {
		goOn(keys[1:])
		env.after(testInterval)
	}
	goOn(keys[:1])
	require.Equal(t, v1alpha1.ActuatorDirect, chosen(1), "its own lags")
	require.Equal(t, v1alpha1.ActuatorHPA, chosen(0), "nine lag")
	for range 7 {
		goOn(keys[:1])
		env.after(testInterval)
	}
	require.Equal(t, v1alpha1.ActuatorDirect, chosen(0))

	add()
	env.writes = nil
	goOn(keys[plan.ManyLag:])
	goOn(keys[plan.ManyLag:])
	require.Equal(t, v1alpha1.ActuatorDirect, chosen(plan.ManyLag), "ten lag")
	require.NotContains(t, env.writes, "apply")

	env.after(plan.LagsTogether)
	add()
	goOn(keys[plan.ManyLag+1:])
	goOn(keys[plan.ManyLag+1:])
	require.Equal(t, v1alpha1.ActuatorHPA, chosen(plan.ManyLag+1), "none has lagged for five minutes")
}

// onlyWrites leaves out the status.
func onlyWrites(writes []string) []string {
	var others []string
	for _, w := range writes {
		if w != "patch status" {
			others = append(others, w)
		}
	}
	return others
}

func TestANamedAutoscalerStaysAndItsLagIsMeasured(t *testing.T) {
	p := fixture.Policy()
	p.Spec.Actuator = v1alpha1.ActuatorHPA
	env := newTestEnv(t, fixture.Function(), p, fixture.ConfigMap())
	env.firstDecision(700)
	for range 5 {
		require.Empty(t, onlyWrites(env.goOn(700)))
	}
	env.scaleManually(7) // as the autoscaler does
	env.goOn(700)
	require.Equal(t, 75*time.Second, env.policy().Status.Actuator.Lag.Duration)
	status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/ActuationSlow", status)
	require.Contains(t, message, "it takes up to 1m15s to set the decided replicas")
	families, err := env.registry.Gather()
	require.NoError(t, err)
	at := slices.IndexFunc(families, func(f *dto.MetricFamily) bool {
		return f.GetName() == "pulsar_autoscaler_actuation_lag_seconds"
	})
	require.InDelta(t, 75, families[at].GetMetric()[0].GetHistogram().GetSampleSum(), 1e-9)

	env.restart()
	env.goOn(700)
	require.Equal(t, 75*time.Second, env.policy().Status.Actuator.Lag.Duration, "in another process")
}
