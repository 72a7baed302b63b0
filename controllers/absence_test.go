// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// vanish deletes the target, as a function worker does when it updates a function.
func (env *testEnv) vanish() {
	env.t.Helper()
	require.NoError(env.t, env.client.Delete(env.t.Context(), fixture.Function()))
	env.reconcile()
	status, _ := env.condition(v1alpha1.ConditionTargetFound)
	require.Equal(env.t, "False/TargetNotFound", status)
	require.Nil(env.t, env.policy().Status.DesiredReplicas, "nothing is asked of what may bear the name next")
}

func (env *testEnv) tracked() error {
	_, err := env.store.Read(backlog.NewSubscription(fixture.Cluster(), "public/default/resize", "in"), env.now)
	return err
}

func TestARecreatedTargetIsDecidedForAtOnce(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	learned := &policy.LearnedCapacity{MessagesPerSecond: 10, Observations: 40, LearnedAt: env.now}
	env.reconciler.memories.byKey[fixture.Key()].resume.Capacity = learned
	env.vanish()
	env.after(testInterval)
	env.answer(800, 10_000)
	env.reconcile()
	require.NoError(t, env.tracked())

	recreated := fixture.Function()
	fixture.Spec(recreated)["replicas"] = int64(1)
	require.NoError(t, env.client.Create(t.Context(), recreated))
	env.reconcile()
	require.Equal(t, int32(8), *env.policy().Status.DesiredReplicas, "with what was measured meanwhile")
	require.Equal(t, int32(1), *env.policy().Status.SpecReplicas)
	require.Equal(t, learned.Observations, env.reconciler.memories.byKey[fixture.Key()].resume.Capacity.Observations)
}

func TestAMissingTargetIsNotTrackedForEver(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	env.vanish()
	env.after(absentFor - 1)
	env.reconcile()
	require.NotErrorIs(t, env.tracked(), backlog.ErrNotTracked)
	env.after(1)
	env.reconcile()
	require.ErrorIs(t, env.tracked(), backlog.ErrNotTracked)
}
