// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// unfollowedEnv has a Function with the decided 3 replicas, and a StatefulSet with 2 because its operator is stopped.
func unfollowedEnv(t *testing.T) *testEnv {
	t.Helper()
	function, p := fixture.Function(), fixture.Policy()
	function.SetGeneration(2)
	function.Object["status"] = map[string]any{"observedGeneration": int64(1)}
	set := fixture.StatefulSet(func(set *unstructured.Unstructured) {
		set.Object["spec"] = map[string]any{"replicas": int64(2)}
	})
	p.Spec.Actuator = v1alpha1.ActuatorDirect
	env := newTestEnv(t, function, set, p, fixture.ConfigMap())
	env.firstDecision(300)
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status)
	require.Contains(t, message, "about to follow")
	return env
}

// operatorActs copies the Function's replicas to the StatefulSet.
func (env *testEnv) operatorActs() {
	env.t.Helper()
	set := cluster.NewUnstructured(cluster.KindStatefulSet)
	set.SetNamespace(fixture.Namespace)
	set.SetName("resize-function")
	require.NoError(env.t, env.client.Get(env.t.Context(), client.ObjectKeyFromObject(set), set))
	fixture.Spec(set)["replicas"] = int64(3)
	require.NoError(env.t, env.client.Update(env.t.Context(), set))
}

func TestAStoppedOperatorIsReportedAndItsRecoveryToo(t *testing.T) {
	env := unfollowedEnv(t)
	env.events()
	for range 2 {
		env.after(testInterval)
		env.answer(300, 10_000)
		env.reconcile()
	}
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/NotFollowed", status)
	const want = "Function Mesh does not act on the change: is its operator running? StatefulSet resize-function does not " +
		"have the replicas of Function resize"
	require.Equal(t, want, message)
	require.Equal(t, []string{"Warning NotFollowed " + want}, env.events())

	env.restart()
	env.after(testInterval)
	env.answer(300, 10_000)
	env.reconcile()
	status, _ = env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/NotFollowed", status, "in another process")

	env.operatorActs()
	env.reconcile()
	status, _ = env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status)
	events := env.events()
	require.Len(t, events, 1)
	require.Contains(t, events[0], "Normal Scaling Ready is no longer NotFollowed: the target follows the decisions")
	env.after(testInterval)
	env.reconcile()
	require.Empty(t, env.events(), "one event")
}

func TestAStoppedOperatorIsReportedWhilePulsarIsUnreachable(t *testing.T) {
	env := unfollowedEnv(t)
	// Without new data each reconcile is the one that the last one requested.
	for range 3 {
		env.after(testInterval)
		env.reconcile()
	}
	status, _ := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/NotFollowed", status)
	env.after(2 * time.Minute)
	env.reconcile()
	status, _ = env.condition(v1alpha1.ConditionBacklogKnown)
	require.Equal(t, "False/Stale", status)
	env.operatorActs()
	env.reconcile()
	status, _ = env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/Stale", status)
}
