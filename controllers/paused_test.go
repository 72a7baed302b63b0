// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// lease is the Lease of the leader election, with the annotation unless it is empty.
func lease(paused string) *coordinationv1.Lease {
	key, object := testLease(), &coordinationv1.Lease{}
	object.Namespace, object.Name = key.Namespace, key.Name
	if paused != "" {
		object.Annotations = map[string]string{AnnotationAllPaused: paused}
	}
	return object
}

// annotateLease pauses all policies with a text as JSON, or resumes them with null.
func (env *testEnv) annotateLease(text string) {
	env.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, AnnotationAllPaused, text)
	require.NoError(env.t, env.client.Patch(env.t.Context(), lease(""), client.RawPatch(types.MergePatchType, patch)))
}

func TestAnAnnotationOfTheLeasePausesAllPoliciesUntilItIsRemoved(t *testing.T) {
	for _, actuator := range []v1alpha1.Actuator{v1alpha1.ActuatorHPA, v1alpha1.ActuatorDirect} {
		t.Run(string(actuator), func(t *testing.T) {
			p := fixture.Policy()
			p.Spec.Actuator = actuator
			env := newTestEnv(t, fixture.Function(), p, fixture.ConfigMap(), lease(""))
			env.firstDecision(300)
			require.Equal(t, int64(3), env.replicas())

			env.annotateLease(`"incident 42"`)
			env.after(testInterval)
			env.answer(900, 10_000)
			env.reconcile()
			require.Equal(t, int64(3), env.replicas())
			require.Nil(t, env.autoscaler())
			status := env.policy().Status
			require.Nil(t, status.DesiredReplicas)
			require.Equal(t, int64(900), *status.Signals.ReadyMessages)
			ready, message := env.condition(v1alpha1.ConditionReady)
			require.Equal(t, "True/Paused", ready)
			require.Equal(t, "all policies are paused (incident 42): the backlog is measured, and nothing is decided or "+
				"changed. To resume: kubectl -n pulsar-autoscaler annotate lease adapter pulsar-autoscaler.io/paused-", message)

			env.scaleManually(30)
			env.after(testInterval)
			env.answer(950, 10_000)
			env.reconcile()
			require.Equal(t, int64(30), env.replicas(), "replicas stay as a user sets them, also above maxReplicas")
			env.restart()
			env.reconcile()
			ready, _ = env.condition(v1alpha1.ConditionReady)
			require.Equal(t, "True/Paused", ready, "it outlives the leader")

			env.scaleManually(3)
			env.annotateLease("null")
			env.after(testInterval)
			env.answer(900, 10_000)
			env.reconcile()
			require.Equal(t, int32(9), *env.policy().Status.DesiredReplicas)
			require.Equal(t, actuator == v1alpha1.ActuatorHPA, env.autoscaler() != nil)
		})
	}
}

func TestAPausedFleetAnswersForRecommendToo(t *testing.T) {
	p := fixture.Policy()
	p.Spec.Mode = v1alpha1.ModeRecommend
	env := newTestEnv(t, fixture.Function(), p, fixture.ConfigMap(), lease("yes"))
	env.reconcile()
	env.answer(900, 10_000)
	env.reconcile()
	require.Nil(t, env.policy().Status.DesiredReplicas, "autoscalers of users that follow it hold")
	ready, _ := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Paused", ready)
}

func TestOnlyTheAnnotationOfTheLeasePausesAll(t *testing.T) {
	for name, test := range map[string]struct {
		annotation string
		ready      string
		decides    bool
	}{
		"no annotation":   {"", "Unknown/Pending", true}, // no HorizontalPodAutoscaler runs here
		"set to false":    {"false", "Unknown/Pending", true},
		"set to true":     {"true", "True/Paused", false},
		"set to any text": {"broker upgrade", "True/Paused", false},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap(), lease(test.annotation))
			env.reconcile()
			env.answer(300, 10_000)
			env.reconcile()
			env.reconcile()
			ready, _ := env.condition(v1alpha1.ConditionReady)
			require.Equal(t, test.ready, ready)
			require.Equal(t, test.decides, env.policy().Status.DesiredReplicas != nil)
		})
	}
}

func TestAChangedAnnotationOfTheLeaseIsNoticedAndARenewalIsNot(t *testing.T) {
	changed := allPausedChanged(testLease())
	update := func(before, after client.Object) bool {
		return changed.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	require.True(t, update(lease(""), lease("true")))
	require.True(t, update(lease("true"), lease("")))
	require.False(t, update(lease("true"), lease("true")))
	require.False(t, changed.Create(event.CreateEvent{Object: lease("")}))
	require.True(t, changed.Create(event.CreateEvent{Object: lease("true")}))
	require.True(t, changed.Delete(event.DeleteEvent{Object: lease("true")}))
	other := lease("true")
	other.Name = "another"
	require.False(t, changed.Create(event.CreateEvent{Object: other}))
}

// TestAPinIsBothBounds: what KEDA's annotation paused-replicas does, without a field of its own.
func TestAPinIsBothBounds(t *testing.T) {
	pin := func(env *testEnv, patch string) {
		env.t.Helper()
		p := env.policy()
		require.NoError(env.t, env.client.Patch(env.t.Context(), p, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	for _, actuator := range []v1alpha1.Actuator{v1alpha1.ActuatorHPA, v1alpha1.ActuatorDirect} {
		t.Run(string(actuator), func(t *testing.T) {
			p := fixture.Policy()
			p.Spec.Actuator = actuator
			env := newTestEnv(t, fixture.Function(), p, fixture.ConfigMap())
			env.firstDecision(300)
			pin(env, `{"spec":{"minReplicas":8,"maxReplicas":8}}`)
			for _, messages := range []int64{1_900, 0, 300} {
				env.after(testInterval)
				env.answer(messages, 10_000)
				env.reconcile()
				require.Equal(t, int32(8), *env.policy().Status.DesiredReplicas)
				if hpa := env.autoscaler(); hpa != nil {
					require.Equal(t, int32(8), *hpa.Spec.MinReplicas)
					require.Equal(t, int32(8), hpa.Spec.MaxReplicas)
					env.scaleManually(8) // as the HorizontalPodAutoscaler does
				}
				require.Equal(t, int64(8), env.replicas())
			}
			env.after(2 * time.Minute)
			env.reconcile()
			require.Equal(t, int32(8), *env.policy().Status.DesiredReplicas, "while the backlog is unknown, too")

			pin(env, `{"spec":{"minReplicas":1,"maxReplicas":20}}`)
			env.answer(1_200, 10_000)
			env.reconcile()
			require.Equal(t, int32(12), *env.policy().Status.DesiredReplicas)
		})
	}
}
