// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestTheFirstReadingLeadsToAnAutoscalerAndAStatus(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	require.Equal(t, []string{"patch status"}, w.reconcile(), "no autoscaler before there is a number for it")
	status, _ := w.condition(v1alpha1.ConditionBacklogKnown)
	require.Equal(t, "Unknown/NoDataYet", status)
	require.Empty(t, w.events())

	w.answer(700, 10_000)
	require.Equal(t, []string{"apply", "patch status"}, w.reconcile())
	p, hpa := w.policy(), w.autoscaler()
	require.NotNil(t, hpa)
	require.True(t, metav1.IsControlledBy(hpa, p))
	require.Equal(t, int32(20), hpa.Spec.MaxReplicas)
	require.Equal(t, int32(7), *p.Status.DesiredReplicas)
	require.Equal(t, int32(3), *p.Status.SpecReplicas)
	require.Equal(t, hpa.Name, p.Status.HorizontalPodAutoscaler)
	require.Equal(t, int64(700), *p.Status.Signals.ReadyMessages)
	require.Equal(t, []string{"Normal DesiredReplicasChanged 3 -> 7: 700 waiting / 100 per replica = 7.00"}, w.events())
	require.Equal(t, 1, w.metric("pulsar_autoscaler_policy_desired_replicas"))
}

func TestAWorldThatDidNotChangeIsNotWrittenTo(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(700)
	for range 4 {
		require.Empty(t, w.reconcile())
		w.after(testInterval / 2)
	}
	w.after(5 * time.Minute)
	w.answer(700, 10_000)
	require.Equal(t, []string{"patch status"}, w.reconcile(), "the heartbeat of the status")
}

func TestADecisionThatChangesIsWrittenOnce(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(700)
	w.events()
	w.after(testInterval)
	w.answer(1_500, 11_000)
	require.Equal(t, []string{"patch status"}, w.reconcile(), "the autoscaler is as it was")
	require.Equal(t, int32(15), *w.policy().Status.DesiredReplicas)
	require.Equal(t, []string{"Normal DesiredReplicasChanged 7 -> 15: 1500 waiting / 100 per replica = 15.00"}, w.events())
}

func TestAChangedBoundIsAppliedToTheAutoscaler(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(700)
	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MaxReplicas = 5 })
	require.Equal(t, []string{"apply", "patch status"}, w.reconcile())
	require.Equal(t, int32(5), w.autoscaler().Spec.MaxReplicas)
	require.Equal(t, int32(5), *w.policy().Status.DesiredReplicas)
	require.Equal(t, "maxReplicas", w.policy().Status.Decision.CappedBy)
	require.Equal(t, int64(2), w.policy().Status.ObservedGeneration)
}

func TestABrokerThatIsDownKeepsTheDecision(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(700)
	w.events()
	w.after(2 * time.Minute)
	w.store.Fail(backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic},
		fmt.Errorf("%w: connection refused", backlog.ErrUnreachable))
	require.Equal(t, []string{"patch status"}, w.reconcile())
	require.Equal(t, int32(7), *w.policy().Status.DesiredReplicas)
	status, message := w.condition(v1alpha1.ConditionBacklogKnown)
	require.Equal(t, "False/Stale", status)
	require.Contains(t, message, "connection refused")
	require.Len(t, w.events(), 1)
	require.NotNil(t, w.autoscaler())
	require.Empty(t, w.reconcile())
}

func TestATransientErrorIsTriedAgain(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.reconcile()
	w.answer(700, 10_000)
	w.applyFails = apierrors.NewServiceUnavailable("etcd is away")
	_, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.ErrorContains(t, err, "etcd is away")
	w.applyFails = nil
	require.Equal(t, []string{"apply", "patch status"}, w.reconcile())
}

func TestARestartResumesFromTheStatus(t *testing.T) {
	p := fixture.Policy()
	p.Spec.Strategies = []v1alpha1.Strategy{{Type: v1alpha1.StrategyCapacity}}
	desired := int32(3)
	p.Status = v1alpha1.AutoscalingPolicyStatus{
		ObservedGeneration: 1, DesiredReplicas: &desired,
		Capacity: &v1alpha1.Capacity{
			MessagesPerSecond: v1alpha1.NewRate(10), Observations: 40, LearnedAt: metav1.NewTime(time.Unix(1_799_999_000, 0)),
		},
	}
	w := newTestWorld(t, fixture.Function(), p, fixture.ConfigMap())
	require.Empty(t, w.reconcile(), "the status in force stands while the first answer is under way")
	w.answer(0, 10_000)
	w.after(testInterval)
	w.answer(0, 10_000+15*70)
	require.Equal(t, []string{"apply", "patch status"}, w.reconcile())
	status := w.policy().Status
	require.Equal(t, int32(10), *status.DesiredReplicas, "70/s and what piles up meanwhile at 10/s")
	require.Equal(t, int32(40), status.Capacity.Observations)
}

func TestDeletionUntracks(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(700)
	subscription := backlog.NewSubscription(fixture.Cluster(), "public/default/resize", "in")
	_, err := w.store.Read(subscription, w.now)
	require.NoError(t, err)
	require.NoError(t, w.client.Delete(t.Context(), w.policy()))
	require.Empty(t, w.reconcile())
	_, err = w.store.Read(subscription, w.now)
	require.ErrorIs(t, err, backlog.ErrNotTracked)
	require.Zero(t, w.metric("pulsar_autoscaler_policy_desired_replicas"))
	require.Empty(t, w.reconciler.memories.byKey)
	require.Empty(t, w.reconciler.interest.users)
}

func TestAPolicyMadeAnewStartsAfresh(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(1_500)
	w.reconciler.memories.byKey[fixture.Key()].resume.Capacity = &policy.LearnedCapacity{
		MessagesPerSecond: 10,
		Observations:      40, LearnedAt: w.now,
	}
	again := fixture.Policy()
	again.UID = "uid-again"
	require.NoError(t, w.client.Delete(t.Context(), w.policy()))
	require.NoError(t, w.client.Delete(t.Context(), w.autoscaler()))
	require.NoError(t, w.client.Create(t.Context(), again))
	w.after(testInterval)
	w.answer(500, 11_000) // 133/s were done and more than a second of that waits: busy
	w.reconcile()
	require.NotNil(t, w.policy().Status.DesiredReplicas)
	require.Equal(t, int32(1), w.policy().Status.Capacity.Observations,
		"what its forerunner learned may be of another Function")
}

func TestNewsOfATopicQueuesItsPolicies(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	topic := backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic}
	w.reconciler.Notify(topic) // no queue yet: not the leader
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	require.NoError(t, news{interest: w.reconciler.interest}.Start(t.Context(), queue))
	w.reconcile()
	w.reconciler.Notify(backlog.Topic{Cluster: fixture.Cluster(), Name: "persistent://public/default/other"})
	require.Zero(t, queue.Len())
	w.reconciler.Notify(topic)
	w.reconciler.Notify(topic)
	require.Equal(t, 1, queue.Len())
	request, _ := queue.Get()
	require.Equal(t, fixture.Key(), request.NamespacedName)
}

func TestTheAutoscalersConditionIsMirrored(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(700)
	hpa := w.autoscaler()
	hpa.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{
		Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "AmbiguousSelector",
		Message: "controlled by multiple HPAs",
	}}
	require.NoError(t, w.client.Status().Update(t.Context(), hpa))
	w.reconcile()
	status, message := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/AmbiguousSelector", status)
	require.Equal(t, "controlled by multiple HPAs", message)
}

func TestAnAutoscalerIsThereToSayWhatIsWrongBeforeAnythingWasDecided(t *testing.T) {
	w := newTestWorld(t, fixture.Policy(), fixture.Function(), fixture.ConfigMap())
	w.reconcile()
	require.Nil(t, w.autoscaler(), "the first answer is under way for a second or two")
	w.store.Fail(
		backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic},
		fmt.Errorf("%w: in", backlog.ErrTopicNotFound),
	)
	w.reconcile()
	require.NotNil(t, w.autoscaler())
	require.Nil(t, w.policy().Status.DesiredReplicas)
	state, _ := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/TopicNotFound", state)
}
