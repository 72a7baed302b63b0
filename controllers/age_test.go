// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// decidedAgo returns the age of the policy's last decision, and why there is no newer one.
func (env *testEnv) decidedAgo() (time.Duration, string) {
	env.t.Helper()
	at, why, known := env.reconciler.memories.decidedAt(fixture.Key())
	require.True(env.t, known)
	return env.now.Sub(at), why
}

func TestADecisionHasAnAge(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	_, _, known := env.reconciler.memories.decidedAt(fixture.Key())
	require.False(t, known, "it was not reconciled")
	env.firstDecision(700)
	env.after(testInterval)
	env.answer(700, 10_000)
	require.Empty(t, env.reconcile())
	age, why := env.decidedAgo()
	require.Zero(t, age, "a decision that changes nothing is one")
	require.Empty(t, why)

	env.after(testInterval)
	env.readFails = errors.New("forbidden")
	_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.Error(t, err)
	age, why = env.decidedAgo()
	require.Equal(t, testInterval, age)
	require.Contains(t, why, "forbidden")

	env.readFails, env.applyFails = nil, errors.New("boom")
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MaxReplicas++ })
	_, err = env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.ErrorIs(t, err, env.applyFails)
	age, why = env.decidedAgo()
	require.Zero(t, age, "the number is decided and written, although our autoscaler is not")
	require.Empty(t, why)
}

func TestADecisionThatIsNotWrittenAges(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	env.after(testInterval)
	env.answer(1_500, 11_000)
	env.passing, env.crashAt = true, 1 // the status write fails
	_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.Error(t, err)
	age, why := env.decidedAgo()
	require.Equal(t, testInterval, age, "the number before is still served")
	require.Contains(t, why, "writing the status")
}

func TestANewLeaderAgesFromItsFirstLook(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	env.store.Untrack(owner(fixture.Key()))
	env.restart()
	env.reconcile()
	env.after(time.Minute)
	env.reconcile()
	age, why := env.decidedAgo()
	require.Equal(t, time.Minute, age)
	require.Contains(t, why, "no data", "it waits for Pulsar")
}

func TestAProcessIsAliveWhileReconcilesEnd(t *testing.T) {
	noon := fixture.Noon()
	later := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	var p progress
	require.NoError(t, p.alive(noon), "it does not lead")
	p.add(1, noon)
	require.NoError(t, p.alive(later(90)))
	require.ErrorContains(t, p.alive(later(91)), "1 reconciles of policies run, and none has ended for 1m31s")
	p.add(1, later(91))
	require.NoError(t, p.alive(later(92)), "another worker continues")
	p.add(-1, later(93))
	require.NoError(t, p.alive(later(183)))
	require.Error(t, p.alive(later(184)))
	p.add(-1, later(185))
	require.NoError(t, p.alive(later(10_000)), "idle")
	p.add(1, later(10_000))
	require.NoError(t, p.alive(later(10_001)), "work after a long time")
}

func TestAReconcileThatHangsIsNoticed(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	require.NoError(t, env.reconciler.progress.alive(env.now.Add(time.Hour)), "no work")
	hanging, release := make(chan struct{}), make(chan struct{})
	env.reads = sync.OnceFunc(func() { close(hanging); <-release })
	done := make(chan error, 1)
	go func() {
		_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
		done <- err
	}()
	<-hanging
	require.NoError(t, env.reconciler.progress.alive(env.now.Add(stuckAfter)))
	require.Error(t, env.reconciler.progress.alive(env.now.Add(stuckAfter+time.Second)))
	close(release)
	require.NoError(t, <-done)
	require.NoError(t, env.reconciler.progress.alive(env.now.Add(time.Hour)))
}
