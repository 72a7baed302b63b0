// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// newWorkerWorld has a function of three instances.
func newWorkerWorld(t *testing.T, objects ...client.Object) *testWorld {
	t.Helper()
	w := newTestWorld(t, objects...)
	w.worker = fixture.NewWorker()
	w.restart()
	return w
}

// consumed is an answer of Pulsar with so many consumers and messages that wait.
func (w *testWorld) consumed(consumers int, waiting, published int64) {
	entries := published
	s := backlog.SubscriptionSample{
		Name: "public/default/resize", Type: backlog.Shared, BacklogEntries: waiting,
		DeliveredMessages: published - waiting,
	}
	for i := range consumers {
		s.Consumers = append(s.Consumers, backlog.ConsumerSample{ID: fmt.Sprint(i)})
	}
	w.store.Record(backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic}, backlog.TopicSample{
		At: w.now, Detail: backlog.Full,
		Partitions: []backlog.PartitionSample{{
			Index: backlog.NotPartitioned, PublishedMessages: published, AddedEntries: &entries,
			Subscriptions: []backlog.SubscriptionSample{s},
		}},
	})
}

func TestAWindowOfAWorkerThatNeverAcknowledgesIsReported(t *testing.T) {
	w := newWorkerWorld(t, fixture.WorkerPolicy())
	w.worker.NeverAcknowledges = true
	w.reconcile()
	status, message := w.condition(v1alpha1.ConditionSubscriptionVerified)
	require.Equal(t, "False/"+v1alpha1.ReasonNeverAcknowledged, status)
	require.Contains(t, message, "update the function with windowConfig.processingGuarantees ATLEAST_ONCE")
}

func TestAFunctionOfAWorkerIsScaledByItsParallelism(t *testing.T) {
	w := newWorkerWorld(t, fixture.WorkerPolicy())
	w.settle(700)
	require.Equal(t, []int32{7}, w.worker.Updates)
	p := w.policy()
	require.Equal(t, v1alpha1.ActuatorDirect, p.Status.Actuator.Type)
	require.Equal(t, "function:public/default/resize", p.Status.Target)
	require.Nil(t, w.autoscaler())
	status, message := w.condition(v1alpha1.ConditionScalesWithoutRestart)
	require.Equal(t, "False/WorkerRestartsAll", status)
	require.Contains(t, message, "consumerProperties")
	status, _ = w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status)
	require.Equal(t, 1, w.worker.StatusReads, "right before the write")

	w.reconcile()
	require.Equal(t, int32(7), *w.policy().Status.SpecReplicas, "read again at once after a write")
	require.Equal(t, map[function.Component]bool{
		{
			Cluster: fixture.Cluster(), Kind: function.KindFunction, Tenant: "public", Namespace: "default",
			Name: "resize",
		}: true,
	}, w.worker.Components)
}

func TestAWorkerIsToldNoMoreOftenThanOnceInAnInterval(t *testing.T) {
	w := newWorkerWorld(t, fixture.WorkerPolicy())
	w.settle(700)
	for range 3 {
		w.after(testInterval)
		w.answer(1_500, 11_000)
		w.reconcile()
		require.Equal(t, policy.HoldWorkerUpdate, w.policy().Status.Decision.Hold.Reason)
		require.Equal(t, int32(7), *w.policy().Status.DesiredReplicas)
	}
	require.Equal(t, []int32{7}, w.worker.Updates)
	w.after(target.DefaultWorkerUpdateInterval - 3*testInterval)
	w.answer(6_500, 12_000) // unbearable, so no start is waited for
	w.reconcile()
	require.Len(t, w.worker.Updates, 2)
}

func TestAWriteThatFailsCountsForTheInterval(t *testing.T) {
	w := newWorkerWorld(t, fixture.WorkerPolicy())
	w.worker.UpdateError = backlog.Because(backlog.ErrForbidden, "grant functions")
	w.reconcile()
	w.answer(700, 10_000)
	_, err := w.reconciler.reconcile(t.Context(), fixture.Key())
	require.ErrorIs(t, err, backlog.ErrForbidden)
	status, message := w.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "Unknown/ScaleFailed", status)
	require.Contains(t, message, "grant functions")
	w.reconcile()
	require.Len(t, w.worker.Updates, 1)
}

func TestAStoppedFunctionIsNeverWrittenTo(t *testing.T) {
	w := newWorkerWorld(t, fixture.WorkerPolicy())
	w.settle(300)
	require.Empty(t, w.worker.Updates)
	require.Zero(t, w.worker.StatusReads, "consumers say that it runs")

	w.worker.Stopped = true // since its consumers were counted
	w.after(testInterval)
	w.answer(700, 10_000)
	w.reconcile()
	require.Empty(t, w.worker.Updates)
	require.Equal(t, 1, w.worker.StatusReads)

	w.consumed(0, 700, 10_000)
	w.reconcile()
	require.Equal(t, policy.HoldWorkerUnknown, w.policy().Status.Decision.Hold.Reason, "a restart may be on its way")
	for range 3 {
		w.after(testInterval)
		w.consumed(0, 900, 10_000)
		w.reconcile()
		status, message := w.condition(v1alpha1.ConditionTargetFound)
		require.Equal(t, "False/Stopped", status)
		require.Contains(t, message, "start it first (pulsar-admin functions start)")
	}
	require.Empty(t, w.worker.Updates)

	w.worker.Stopped = false
	for range 2 { // the subscription is followed again
		w.after(30 * time.Second)
		w.reconcile()
		w.answer(900, 10_000)
	}
	w.reconcile()
	require.Equal(t, []int32{9}, w.worker.Updates)
}

func TestWhatAWorkerSaysIsAConditionOrAHold(t *testing.T) {
	for reason, err := range map[string]error{
		"NoFunctionWorker":   backlog.ErrNoWorker,
		"CredentialsRefused": backlog.ErrUnauthenticated,
		"PermissionMissing":  backlog.ErrForbidden,
		"PulsarUnreachable":  backlog.ErrUnreachable,
		"PulsarUnavailable":  backlog.ErrUnavailable,
		"Unsupported":        backlog.ErrUnsupported,
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorkerWorld(t, fixture.WorkerPolicy())
			w.worker.DescribeError = fmt.Errorf("%w: boom", err)
			w.reconcile()
			status, message := w.condition(v1alpha1.ConditionTargetFound)
			require.Equal(t, "False/"+reason, status)
			require.Contains(t, message, "boom")
			w.worker.DescribeError = nil
			w.after(10 * time.Second)
			w.settle(700)
			require.Equal(t, []int32{7}, w.worker.Updates)
		})
	}
}

func TestAFunctionThatWasKnownIsLeftAsItIsWhileItsWorkerIsAway(t *testing.T) {
	w := newWorkerWorld(t, fixture.WorkerPolicy())
	w.settle(300)
	w.worker.DescribeError = fmt.Errorf("%w: boom", backlog.ErrUnavailable)
	w.after(30 * time.Second)
	w.answer(900, 10_000)
	w.reconcile()
	require.Empty(t, w.worker.Updates)
	require.Equal(t, policy.HoldWorkerUnknown, w.policy().Status.Decision.Hold.Reason)
	require.Contains(t, w.policy().Status.Decision.Hold.Message, "boom")
	status, _ := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status)

	w.worker.DescribeError = fmt.Errorf("%w: gone", backlog.ErrFunctionNotFound)
	w.after(10 * time.Second)
	w.reconcile()
	status, message := w.condition(v1alpha1.ConditionTargetFound)
	require.Equal(t, "False/TargetNotFound", status)
	require.Contains(t, message, "function public/default/resize of the function worker does not exist")
}

func TestAWorkerIsAskedRarely(t *testing.T) {
	w := newWorkerWorld(t, fixture.WorkerPolicy())
	w.settle(300)
	before := w.worker.Described
	for range 10 {
		w.reconcile()
	}
	require.Equal(t, before, w.worker.Described)
	w.after(30 * time.Second)
	w.reconcile()
	require.Equal(t, before+1, w.worker.Described)
}

func TestAWorkerIsNotAskedInModeOff(t *testing.T) {
	p := fixture.WorkerPolicy()
	p.Spec.Mode = v1alpha1.ModePaused
	w := newWorkerWorld(t, p)
	w.reconcile()
	require.Zero(t, w.worker.Described)
	require.Zero(t, w.worker.StatusReads)
	require.Nil(t, w.policy().Status.SpecReplicas, "nobody looked")
	status, _ := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Paused", status)

	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeAuto })
	w.settle(300)
	require.Equal(t, int32(3), *w.policy().Status.SpecReplicas)
}

func TestWhatTheWorkerRunsInKubernetesIsRefused(t *testing.T) {
	set := cluster.NewUnstructured(cluster.KindStatefulSet)
	set.SetNamespace(fixture.Namespace)
	set.SetName("pf-public-default-resize")
	w := newWorkerWorld(t, fixture.WorkerPolicy(), set)
	w.reconcile()
	status, message := w.condition(v1alpha1.ConditionTargetFound)
	require.Equal(t, "False/TargetInvalid", status)
	require.Contains(t, message,
		"set spec.scaleTargetRef to apiVersion apps/v1, kind StatefulSet, name pf-public-default-resize")
	require.Zero(t, w.worker.Described)
}

func TestAFunctionOfAWorkerIsScaledOnceInAnInterval(t *testing.T) {
	w := newWorkerWorld(t, fixture.WorkerPolicy())
	w.settle(700)
	require.Equal(t, []int32{7}, w.worker.Updates)
	require.Nil(t, w.autoscaler())
	w.answer(900, 10_000)
	w.reconcile()
	require.Equal(t, []int32{7}, w.worker.Updates, "not within the interval")
	status, _ := w.condition(v1alpha1.ConditionAutoscalerApplied)
	require.NotContains(t, status, "ScaleFailed")
}

func TestOneFunctionOfAWorkerHasOnePolicyWhateverItsNamespace(t *testing.T) {
	older := fixture.WorkerPolicy()
	older.Namespace, older.Name, older.UID = "other", "first", "uid-first"
	older.CreationTimestamp = metav1.NewTime(older.CreationTimestamp.Add(-time.Hour))
	w := newWorkerWorld(t, fixture.WorkerPolicy(), older)
	w.settle(700)
	require.Empty(t, w.worker.Updates)
	status, message := w.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "False/OlderPolicy", status)
	require.Contains(t, message, "AutoscalingPolicy other/first is older")

	older.Spec.Pulsar.AdminURL = "http://elsewhere:8080"
	w = newWorkerWorld(t, fixture.WorkerPolicy(), older)
	w.settle(700)
	require.Equal(t, []int32{7}, w.worker.Updates, "a function of that name in another cluster")
}
