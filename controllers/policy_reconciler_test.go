// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestTheFirstReadingLeadsToAnAutoscalerAndAStatus(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	require.Equal(t, []string{"patch status"}, env.reconcile(), "no autoscaler before there is a number for it")
	status, _ := env.condition(v1alpha1.ConditionBacklogKnown)
	require.Equal(t, "Unknown/NoDataYet", status)
	require.Empty(t, env.events())

	env.answer(700, 10_000)
	require.Equal(t, []string{"apply", "patch status"}, env.reconcile())
	p, hpa := env.policy(), env.autoscaler()
	require.NotNil(t, hpa)
	require.True(t, metav1.IsControlledBy(hpa, p))
	require.Equal(t, int32(20), hpa.Spec.MaxReplicas)
	require.Equal(t, int32(7), *p.Status.DesiredReplicas)
	require.Equal(t, int32(3), *p.Status.SpecReplicas)
	require.Equal(t, hpa.Name, p.Status.HorizontalPodAutoscaler)
	require.Equal(t, int64(700), *p.Status.Signals.ReadyMessages)
	require.Equal(t, []string{"Normal DesiredReplicasChanged 3 -> 7: 700 backlog / 100 per replica = 7.00"}, env.events())
	require.Equal(t, 1, env.metric("pulsar_autoscaler_policy_desired_replicas"))
}

func TestUnchangedObjectsAreNotWritten(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	for range 4 {
		require.Empty(t, env.reconcile())
		env.after(testInterval / 2)
	}
	env.after(5 * time.Minute)
	env.answer(700, 10_000)
	require.Equal(t, []string{"patch status"}, env.reconcile(), "the heartbeat of the status")
}

func TestADecisionThatChangesIsWrittenOnce(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	env.events()
	env.after(testInterval)
	env.answer(1_500, 11_000)
	require.Equal(t, []string{"patch status"}, env.reconcile(), "the autoscaler is as it was")
	require.Equal(t, int32(15), *env.policy().Status.DesiredReplicas)
	require.Equal(t, []string{"Normal DesiredReplicasChanged 7 -> 15: 1500 backlog / 100 per replica = 15.00"},
		env.events())
}

func TestAChangedBoundIsAppliedToTheAutoscaler(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MaxReplicas = 5 })
	require.Equal(t, []string{"apply", "patch status"}, env.reconcile())
	require.Equal(t, int32(5), env.autoscaler().Spec.MaxReplicas)
	require.Equal(t, int32(5), *env.policy().Status.DesiredReplicas)
	require.Equal(t, "maxReplicas", env.policy().Status.Decision.CappedBy)
	require.Equal(t, int64(2), env.policy().Status.ObservedGeneration)
}

func TestABrokerThatIsDownKeepsTheDecision(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	env.events()
	env.after(2 * time.Minute)
	env.store.Fail(backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic},
		fmt.Errorf("%w: connection refused", backlog.ErrUnreachable))
	require.Equal(t, []string{"patch status"}, env.reconcile())
	require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas)
	status, message := env.condition(v1alpha1.ConditionBacklogKnown)
	require.Equal(t, "False/Stale", status)
	require.Contains(t, message, "connection refused")
	require.Len(t, env.events(), 1)
	require.NotNil(t, env.autoscaler())
	require.Empty(t, env.reconcile())
}

func TestARestartResumesFromTheStatus(t *testing.T) {
	p := fixture.Policy()
	p.Spec.Strategies = []v1alpha1.Strategy{{Type: v1alpha1.StrategyCapacity}}
	resumesCapacity(p, policy.LearnedCapacity{
		MessagesPerSecond: 10, Variance: 0.04, Observations: 40, LearnedAt: time.Unix(1_799_999_000, 0),
	})
	env := newTestEnv(t, fixture.Function(), p, fixture.ConfigMap())
	require.Empty(t, env.reconcile(), "the status in force stands while the first answer is under way")
	env.answer(0, 10_000)
	env.after(testInterval)
	env.answer(0, 10_000+15*70)
	require.Equal(t, []string{"apply", "patch status"}, env.reconcile())
	status := env.policy().Status
	require.Equal(t, int32(14), *status.DesiredReplicas, "70/s at 10/s each, and what piles up in 32 s, drained in 21 s")
	require.Equal(t, int32(40), status.Capacity.Observations)
}

func TestDeletionUntracks(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	subscription := backlog.NewSubscription(fixture.Cluster(), "public/default/resize", "in")
	_, err := env.store.Read(subscription, env.now)
	require.NoError(t, err)
	require.NoError(t, env.client.Delete(t.Context(), env.policy()))
	require.Empty(t, env.reconcile())
	_, err = env.store.Read(subscription, env.now)
	require.ErrorIs(t, err, backlog.ErrNotTracked)
	require.Zero(t, env.metric("pulsar_autoscaler_policy_desired_replicas"))
	require.Empty(t, env.reconciler.memories.byKey)
	require.Empty(t, env.reconciler.interest.users)
}

func TestARecreatedPolicyStartsAfresh(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(1_500)
	env.reconciler.memories.byKey[fixture.Key()].resume.Capacity = &policy.LearnedCapacity{
		MessagesPerSecond: 10,
		Observations:      40, LearnedAt: env.now,
	}
	again := fixture.Policy()
	again.UID = "uid-again"
	require.NoError(t, env.client.Delete(t.Context(), env.policy()))
	require.NoError(t, env.client.Delete(t.Context(), env.autoscaler()))
	require.NoError(t, env.client.Create(t.Context(), again))
	env.after(testInterval)
	env.answer(500, 11_000) // 133/s were processed and the backlog takes more than 1 s: busy
	env.reconcile()
	require.NotNil(t, env.policy().Status.DesiredReplicas)
	require.Equal(t, int32(1), env.policy().Status.Capacity.Observations,
		"what its forerunner learned may be of another Function")
}

func TestNewsOfATopicQueuesItsPolicies(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	topic := backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic}
	env.reconciler.interest.notify(topic) // no queue: not the leader
	queue := priorityqueue.New[reconcile.Request]("news")
	t.Cleanup(queue.ShutDown)
	require.NoError(t, env.reconciler.interest.start(t.Context(), queue))
	env.reconcile()
	env.reconciler.interest.notify(backlog.Topic{Cluster: fixture.Cluster(), Name: "persistent://public/default/other"})
	require.Zero(t, queue.Len())
	env.reconciler.interest.notify(topic)
	env.reconciler.interest.notify(topic)
	require.Equal(t, 1, queue.Len())
	request, priority, _ := queue.GetWithPriority()
	require.Equal(t, fixture.Key(), request.NamespacedName)
	require.Equal(t, routinePriority, priority)
	queue.Done(request)

	env.reconciler.interest.notify(topic)
	unseen := reconcile.Request{NamespacedName: testLease()}
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, unseen) // as at the start
	request, _, _ = queue.GetWithPriority()
	require.Equal(t, unseen, request, "policies that were not reconciled yet come before news of the others")
	queue.Done(request)
	request, _, _ = queue.GetWithPriority()
	queue.Done(request)
	next, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.NoError(t, err)
	require.Equal(t, routinePriority, *next.Priority, "and before their next turn")

	function := fixture.Function()
	fixture.Spec(function)["replicas"] = int64(0)
	idle := newTestEnv(t, function, idlePolicy(v1alpha1.ActuatorDirect), fixture.ConfigMap())
	require.NoError(t, idle.reconciler.interest.start(t.Context(), queue))
	idle.firstDecision(0)
	queue.Add(reconcile.Request{NamespacedName: testLease()})
	idle.reconciler.interest.notify(topic)
	request, priority, _ = queue.GetWithPriority()
	require.Equal(t, fixture.Key(), request.NamespacedName, "targets at zero come first")
	require.Equal(t, wakePriority, priority)
}

// TestNewsOfAPatternAreBatched: it may match thousands of topics, each with news of its own.
func TestNewsOfAPatternAreBatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newTestEnv(t)
		followed, queue := env.reconciler.interest, priorityqueue.New[reconcile.Request]("news")
		defer queue.ShutDown()
		require.NoError(t, followed.start(t.Context(), queue))
		const pattern = "persistent://public/default/in-.*"
		subscription := backlog.NewSubscription(fixture.Cluster(), "s")
		subscription.Patterns = []string{pattern}
		followed.follow(fixture.Key(), &subscription)
		queued := func(after time.Duration, names ...string) int {
			for _, name := range names {
				followed.notify(backlog.Topic{Cluster: fixture.Cluster(), Name: name})
			}
			time.Sleep(after)
			synctest.Wait()
			return queue.Len()
		}
		inputs := []string{"persistent://public/default/in-1", "persistent://public/default/in-2"}
		require.Zero(t, queued(2*patternNewsDelay, "persistent://public/another/in-1"))
		require.Zero(t, queued(patternNewsDelay-1, inputs...))
		require.Equal(t, 1, queued(1))
		request, _, _ := queue.GetWithPriority()
		queue.Done(request)
		require.Equal(t, 1, queued(0, pattern), "a listing is no news of one topic")
		request, _, _ = queue.GetWithPriority()
		queue.Done(request)
		followed.follow(fixture.Key(), nil)
		require.Zero(t, queued(2*patternNewsDelay, append(inputs, pattern)...))
	})
}

func TestAnAutoscalerReportsProblemsBeforeTheFirstDecision(t *testing.T) {
	env := newTestEnv(t, fixture.Policy(), fixture.Function(), fixture.ConfigMap())
	env.reconcile()
	require.Nil(t, env.autoscaler(), "the first answer is under way for a second or two")
	env.store.Fail(
		backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic},
		fmt.Errorf("%w: in", backlog.ErrTopicNotFound),
	)
	env.reconcile()
	require.NotNil(t, env.autoscaler())
	require.Nil(t, env.policy().Status.DesiredReplicas)
	state, _ := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/TopicNotFound", state)
}
