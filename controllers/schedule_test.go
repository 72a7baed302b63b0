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

// dayEnv has decided at that time with a schedule of at least 5 replicas from 9 to 10.
func dayEnv(t *testing.T, at time.Time) *testEnv {
	t.Helper()
	p := fixture.Policy()
	p.Spec.Schedules = []v1alpha1.Schedule{{
		Name: "day", Start: "0 9 * * *", End: "0 10 * * *", MinReplicas: new(int32(5)),
	}}
	env := newTestEnv(t, fixture.Function(), p, fixture.ConfigMap())
	env.now = at
	env.firstDecision(0)
	return env
}

func TestAScheduleLimitsReplicasWhileItIsActive(t *testing.T) {
	env := dayEnv(t, time.Date(2027, 1, 15, 8, 50, 0, 0, time.UTC))
	require.Nil(t, env.policy().Status.Limits)
	require.Equal(t, int32(3), *env.policy().Status.DesiredReplicas)
	env.events()

	env.after(10 * time.Minute)
	env.reconcile()
	require.Equal(t, &v1alpha1.Limits{MinReplicas: 5, MaxReplicas: 20, Schedules: []v1alpha1.ScheduleName{"day"}},
		env.policy().Status.Limits)
	require.Equal(t, int32(5), *env.autoscaler().Spec.MinReplicas, "it holds even while the backlog is unknown")
	require.Contains(t, env.events(), "Normal ReplicaLimitsChanged 5 to 20 replicas: active schedules: day")
	env.answer(0, 10_000)
	env.reconcile()
	require.Equal(t, int32(5), *env.policy().Status.DesiredReplicas)
	status, message := env.condition(v1alpha1.ConditionScalingLimited)
	require.Equal(t, "True/TooFewReplicas", status)
	require.Equal(t, "the load needs fewer replicas than minReplicas 5 of the active schedules (day)", message)

	env.after(time.Hour)
	env.reconcile()
	require.Nil(t, env.policy().Status.Limits)
	require.Contains(t, env.events(), "Normal ReplicaLimitsChanged 1 to 20 replicas: no schedule is active")
}

func TestAScheduleWithAMistakeWritesNothingAndIsNamed(t *testing.T) {
	p := fixture.Policy()
	p.Spec.Schedules = []v1alpha1.Schedule{{Name: "day", TimeZone: "Europe/Berlln", Start: "0 9 * * *", End: "0 10 * * *"}}
	env := newTestEnv(t, fixture.Function(), p, fixture.ConfigMap())
	env.firstDecision(1000)
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/ScheduleInvalid", status)
	require.Contains(t, message, `schedule day: timeZone "Europe/Berlln" is not in the IANA database`)
	require.Nil(t, env.autoscaler())
	require.Empty(t, env.written)
}

func TestAScheduleThatBreaksWhileItIsActiveIsNoEnd(t *testing.T) {
	env := dayEnv(t, time.Date(2027, 1, 15, 9, 30, 0, 0, time.UTC))
	require.Equal(t, int32(5), env.policy().Status.Limits.MinReplicas)
	env.events()

	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Schedules[0].End = "0 10 * * 7" })
	env.reconcile()
	for _, event := range env.events() {
		require.NotContains(t, event, "ReplicaLimitsChanged")
	}
}
