// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestAProblemAndItsEndAreAnEventAndALogLineInTheSameWords(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	env.events()
	var lines []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	reconciled := func(waiting int64) []string {
		lines = nil
		env.after(testInterval)
		env.answer(waiting, 10_000)
		_, err := env.reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: fixture.Key()})
		require.NoError(t, err)
		return env.events()
	}
	require.Equal(t, []string{
		"Normal DesiredReplicasChanged 7 -> 20: 3000 backlog / 100 per replica = 30.00 (capped by maxReplicas)",
		"Warning TooManyReplicas the load needs more replicas than maxReplicas",
	}, reconciled(3000))
	require.Equal(t, []string{
		`"level"=0 "msg"="policy event" "type"="Normal" "reason"="DesiredReplicasChanged" "action"="Scale7To20" ` +
			`"note"="7 -> 20: 3000 backlog / 100 per replica = 30.00 (capped by maxReplicas)" "target"="Function/resize"`,
		`"level"=0 "msg"="policy event" "type"="Warning" "reason"="TooManyReplicas" "action"="CheckScalingLimited" ` +
			`"note"="the load needs more replicas than maxReplicas" "target"="Function/resize"`,
	}, lines)
	require.Empty(t, reconciled(3000), "it is reported once")

	require.NotContains(t, reconciled(1500), "ScalingLimited", "within a minute of the last event about it")
	status, _ := env.condition(v1alpha1.ConditionScalingLimited)
	require.Equal(t, "False/DesiredWithinRange", status)
	env.after(time.Minute)
	require.Contains(t, reconciled(1500),
		"Normal DesiredWithinRange ScalingLimited is no longer TooManyReplicas: no bound limits the desired replicas")
}

func TestAHoldThatKeepsARaiseBackIsAnEvent(t *testing.T) {
	function := fixture.Function()
	pauseRollout(function)
	env := newTestEnv(t, function, fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	events := env.events()
	require.Len(t, events, 2, "%q", events)
	require.Contains(t, events[1], "Normal ReplicasHeld RolloutPaused: ")
	require.Contains(t, events[1], "; the load needs 7 replicas, and 3 are kept")

	require.NoError(t, env.client.Get(t.Context(), fixture.Key(), function))
	function.SetAnnotations(nil)
	require.NoError(t, env.client.Update(t.Context(), function))
	env.after(time.Minute)
	env.answer(700, 90_000)
	env.reconcile()
	require.Contains(t, env.events(), "Normal ReplicasReleased the replicas are no longer held: RolloutPaused")
}
