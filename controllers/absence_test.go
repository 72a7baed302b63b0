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

// vanish deletes the target, as a function worker does at an update.
func (w *testWorld) vanish() {
	w.t.Helper()
	require.NoError(w.t, w.client.Delete(w.t.Context(), fixture.Function()))
	w.reconcile()
	status, _ := w.condition(v1alpha1.ConditionTargetFound)
	require.Equal(w.t, "False/TargetNotFound", status)
	require.Nil(w.t, w.policy().Status.DesiredReplicas, "nothing is asked of what may bear the name next")
}

func (w *testWorld) tracked() error {
	_, err := w.store.Read(backlog.NewSubscription(fixture.Cluster(), "public/default/resize", "in"), w.now)
	return err
}

func TestATargetThatIsMadeAnewIsDecidedForAtOnce(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(700)
	learned := &policy.LearnedCapacity{MessagesPerSecond: 10, Observations: 40, LearnedAt: w.now}
	w.reconciler.memories.byKey[fixture.Key()].resume.Capacity = learned
	w.vanish()
	w.after(testInterval)
	w.answer(800, 10_000)
	w.reconcile()
	require.NoError(t, w.tracked())

	anew := fixture.Function()
	fixture.Spec(anew)["replicas"] = int64(1)
	require.NoError(t, w.client.Create(t.Context(), anew))
	w.reconcile()
	require.Equal(t, int32(8), *w.policy().Status.DesiredReplicas, "with what was measured meanwhile")
	require.Equal(t, int32(1), *w.policy().Status.SpecReplicas)
	require.Equal(t, learned.Observations, w.reconciler.memories.byKey[fixture.Key()].resume.Capacity.Observations)
}

func TestATargetThatStaysAwayIsNotFollowedForEver(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(700)
	w.vanish()
	w.after(absentFor - 1)
	w.reconcile()
	require.NotErrorIs(t, w.tracked(), backlog.ErrNotTracked)
	w.after(1)
	w.reconcile()
	require.ErrorIs(t, w.tracked(), backlog.ErrNotTracked)
}

func TestAVanishedTargetIsNotFollowedForAPolicyThatIsOff(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(700)
	w.vanish()
	require.NotErrorIs(t, w.tracked(), backlog.ErrNotTracked)
	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModePaused })
	w.reconcile()
	require.ErrorIs(t, w.tracked(), backlog.ErrNotTracked)
}
