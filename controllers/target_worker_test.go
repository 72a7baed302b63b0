// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// newWorkerEnv has a function of three instances.
func newWorkerEnv(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	env := newTestEnv(t, objects...)
	env.worker = fixture.NewWorker()
	env.restart()
	return env
}

// consumed stores a broker response with the given consumers and backlog.
func (env *testEnv) consumed(consumers int, waiting, published int64) {
	entries := published
	s := backlog.SubscriptionSample{
		Name: "public/default/resize", Type: backlog.Shared, BacklogEntries: waiting,
		DeliveredMessages: published - waiting,
	}
	for i := range consumers {
		s.Consumers = append(s.Consumers, backlog.ConsumerSample{ID: fmt.Sprint(i)})
	}
	env.store.Record(backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic}, backlog.TopicSample{
		At: env.now, Detail: backlog.Full,
		Partitions: []backlog.PartitionSample{{
			Index: backlog.NotPartitioned, PublishedMessages: published, AddedEntries: &entries,
			Subscriptions: []backlog.SubscriptionSample{s},
		}},
	})
}

func TestAWindowOfAWorkerThatNeverAcknowledgesIsReported(t *testing.T) {
	env := newWorkerEnv(t, fixture.WorkerPolicy())
	env.worker.NeverAcknowledges = true
	env.reconcile()
	status, message := env.condition(v1alpha1.ConditionSubscriptionVerified)
	require.Equal(t, "False/"+v1alpha1.ReasonNeverAcknowledged, status)
	require.Contains(t, message, "update the function with windowConfig.processingGuarantees ATLEAST_ONCE")
}

func TestAFunctionOfAWorkerIsScaledByItsParallelism(t *testing.T) {
	env := newWorkerEnv(t, fixture.WorkerPolicy())
	env.firstDecision(700)
	require.Equal(t, []int32{7}, env.worker.Updates)
	p := env.policy()
	require.Equal(t, v1alpha1.ActuatorDirect, p.Status.Actuator.Type)
	require.Equal(t, "function:public/default/resize", p.Status.Target)
	require.Nil(t, env.autoscaler())
	status, message := env.condition(v1alpha1.ConditionScalesWithoutRestart)
	require.Equal(t, "False/WorkerRestartsAll", status)
	require.Contains(t, message, "consumerProperties")
	status, _ = env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status)
	require.Equal(t, 1, env.worker.StatusReads, "right before the write")

	env.reconcile()
	require.Equal(t, int32(7), *env.policy().Status.SpecReplicas, "read again at once after a write")
	require.Equal(t, map[function.Component]bool{
		{
			Cluster: fixture.Cluster(), Kind: function.KindFunction, Tenant: "public", Namespace: "default",
			Name: "resize",
		}: true,
	}, env.worker.Components)
}

func TestAWorkerIsUpdatedAtMostOnceInAnInterval(t *testing.T) {
	env := newWorkerEnv(t, fixture.WorkerPolicy())
	env.firstDecision(700)
	require.Equal(t, []int32{7}, env.worker.Updates)
	require.Nil(t, env.autoscaler())
	for range 3 {
		env.after(testInterval)
		env.answer(1_500, 11_000)
		env.reconcile()
		status, _ := env.condition(v1alpha1.ConditionAutoscalerApplied)
		require.NotContains(t, status, "ScaleFailed")
		require.Equal(t, policy.HoldWorkerUpdate, env.policy().Status.Decision.Hold.Reason)
		require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas)
	}
	require.Equal(t, []int32{7}, env.worker.Updates)
	env.after(target.DefaultWorkerUpdateInterval - 3*testInterval)
	env.answer(6_500, 12_000) // far over the objective, so the decision does not wait for a start
	env.reconcile()
	require.Len(t, env.worker.Updates, 2)
}

// background has the next process send the requests to the worker in the background, as in production. It is called
// in a bubble of synctest, and answered waits until they have ended.
func (env *testEnv) background() (background *target.Background, answered func()) {
	env.t.Helper()
	background = target.NewBackground()
	env.configure = func(config *target.Config) { config.Background = background }
	env.restart()
	ctx, cancel := context.WithCancel(env.t.Context())
	go func() { _ = background.Start(ctx) }()
	env.t.Cleanup(cancel)
	return background, synctest.Wait
}

func TestAnUpdateInTheBackgroundIsSeenByTheNextDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newWorkerEnv(t, fixture.WorkerPolicy())
		env.worker.Answers = make(chan struct{})
		_, answered := env.background()
		env.reconcile()
		answered()
		env.firstDecision(700)
		answered()
		require.Equal(t, []int32{7}, env.worker.Updates)
		env.events()
		requireStays := func(published int64) {
			env.after(testInterval)
			env.answer(700, published)
			env.reconcile()
			require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas)
			require.Empty(t, env.events(), "nothing was scaled back")
		}
		requireStays(11_000) // while the worker loads the package
		close(env.worker.Answers)
		answered()
		requireStays(11_001)
		require.Equal(t, int32(7), *env.policy().Status.SpecReplicas)
	})
}

func TestAWorkerThatRefusesEachUpdateIsNeverReadyBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newWorkerEnv(t, fixture.WorkerPolicy())
		env.worker.UpdateError = backlog.Errorf(backlog.ErrForbidden, "grant functions")
		_, answered := env.background()
		env.reconcile()
		answered()
		env.firstDecision(700)
		for published := range int64(15) {
			answered()
			env.after(testInterval)
			env.answer(700, 11_000+published)
			env.reconcile()
			status, message := env.condition(v1alpha1.ConditionReady)
			require.Equal(t, "Unknown/ScaleFailed", status, message)
		}
		answered()
		require.GreaterOrEqual(t, len(env.worker.Updates), 3)

		env.worker.UpdateError = nil
		for range 5 {
			env.after(testInterval)
			env.answer(700, 12_000)
			env.reconcile()
			answered()
		}
		env.reconcile()
		status, message := env.condition(v1alpha1.ConditionReady)
		require.Equal(t, "True/Scaling", status, message)
	})
}

func TestAnUpdateThatWaitsIsNotSentOnceNothingIsChanged(t *testing.T) {
	for name, change := range map[string]func(*testEnv){
		"mode Paused": func(env *testEnv) {
			env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModePaused })
		},
		"all are paused": func(env *testEnv) { env.annotateLease(`"incident 42"`) },
		"deleted":        func(env *testEnv) { require.NoError(env.t, env.client.Delete(env.t.Context(), env.policy())) },
		"the present number is enough": func(env *testEnv) {
			env.after(testInterval)
			env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MaxReplicas = 3 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newWorkerEnv(t, fixture.WorkerPolicy(), lease(""))
				background, answered := env.background()
				env.reconcile()
				answered()
				free := make(chan struct{})
				for range 4 {
					background.Add(fixture.Namespace, fixture.Cluster().AdminURL, func(context.Context) { <-free })
				}
				answered()
				env.firstDecision(700)
				change(env)
				_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
				require.NoError(t, err)
				close(free)
				answered()
				require.Empty(t, env.worker.Updates)
			})
		})
	}
}

func TestAFailOverDoesNotShortenTheInterval(t *testing.T) {
	env := newWorkerEnv(t, fixture.WorkerPolicy())
	env.firstDecision(700)
	require.Equal(t, []int32{7}, env.worker.Updates)
	env.after(testInterval)
	env.restart()
	env.reconcile()
	env.answer(6_500, 12_000) // far over the objective, so the decision does not wait for a start
	env.reconcile()
	require.Equal(t, []int32{7}, env.worker.Updates)
	require.Equal(t, policy.HoldWorkerUpdate, env.policy().Status.Decision.Hold.Reason)
	env.after(target.DefaultWorkerUpdateInterval - testInterval)
	env.answer(6_500, 13_000)
	env.reconcile()
	require.Len(t, env.worker.Updates, 2)
}

func TestAWriteThatFailsCountsForTheInterval(t *testing.T) {
	env := newWorkerEnv(t, fixture.WorkerPolicy())
	env.worker.UpdateError = backlog.Errorf(backlog.ErrForbidden, "grant functions")
	env.reconcile()
	env.answer(700, 10_000)
	env.reconcile()
	status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "Unknown/ScaleFailed", status)
	require.Contains(t, message, "grant functions")
	env.reconcile()
	require.Len(t, env.worker.Updates, 1)

	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeRecommend })
	env.reconcile()
	status, _ = env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/RecommendOnly", status, "it updates nothing any longer")
}

func TestAStoppedFunctionIsNeverWrittenTo(t *testing.T) {
	env := newWorkerEnv(t, fixture.WorkerPolicy())
	env.firstDecision(300)
	require.Empty(t, env.worker.Updates)
	require.Zero(t, env.worker.StatusReads, "consumers say that it runs")

	env.worker.Stopped = true // changed after its consumers were counted
	env.after(testInterval)
	env.answer(700, 10_000)
	env.reconcile()
	require.Empty(t, env.worker.Updates)
	require.Equal(t, 1, env.worker.StatusReads)

	env.consumed(0, 700, 10_000)
	env.reconcile()
	require.Equal(t, policy.HoldWorkerUnknown, env.policy().Status.Decision.Hold.Reason, "a restart may be on its way")
	for range 3 {
		env.after(testInterval)
		env.consumed(0, 900, 10_000)
		env.reconcile()
		status, message := env.condition(v1alpha1.ConditionTargetFound)
		require.Equal(t, "False/Stopped", status)
		require.Contains(t, message, "start it first (pulsar-admin functions start)")
	}
	require.Empty(t, env.worker.Updates)

	env.worker.Stopped = false
	for range 2 { // the subscription is tracked again
		env.after(30 * time.Second)
		env.reconcile()
		env.answer(900, 10_000)
	}
	env.reconcile()
	require.Equal(t, []int32{9}, env.worker.Updates)
}

func TestTheStateOfAWorkerIsAConditionOrAHold(t *testing.T) {
	for reason, err := range map[string]error{
		"NoFunctionWorker":   backlog.ErrNoWorker,
		"CredentialsRefused": backlog.ErrUnauthenticated,
		"PermissionMissing":  backlog.ErrForbidden,
		"PulsarUnreachable":  backlog.ErrUnreachable,
		"PulsarUnavailable":  backlog.ErrUnavailable,
		"Unsupported":        backlog.ErrUnsupported,
	} {
		t.Run(reason, func(t *testing.T) {
			env := newWorkerEnv(t, fixture.WorkerPolicy())
			env.worker.DescribeError = fmt.Errorf("%w: boom", err)
			env.reconcile()
			status, message := env.condition(v1alpha1.ConditionTargetFound)
			require.Equal(t, "False/"+reason, status)
			require.Contains(t, message, "boom")
			env.worker.DescribeError = nil
			env.after(10 * time.Second)
			env.firstDecision(700)
			require.Equal(t, []int32{7}, env.worker.Updates)
		})
	}
}

func TestAFunctionThatWasKnownIsLeftAsItIsWhileItsWorkerIsAway(t *testing.T) {
	env := newWorkerEnv(t, fixture.WorkerPolicy())
	env.firstDecision(300)
	env.worker.DescribeError = fmt.Errorf("%w: boom", backlog.ErrUnavailable)
	env.after(30 * time.Second)
	env.answer(900, 10_000)
	env.reconcile()
	require.Empty(t, env.worker.Updates)
	require.Equal(t, policy.HoldWorkerUnknown, env.policy().Status.Decision.Hold.Reason)
	require.Contains(t, env.policy().Status.Decision.Hold.Message, "boom")
	status, _ := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status)

	env.worker.DescribeError = fmt.Errorf("%w: gone", backlog.ErrFunctionNotFound)
	env.after(10 * time.Second)
	env.reconcile()
	status, message := env.condition(v1alpha1.ConditionTargetFound)
	require.Equal(t, "False/TargetNotFound", status)
	require.Contains(t, message, "function public/default/resize of the function worker does not exist")
}

func TestAWorkerGetsFewRequests(t *testing.T) {
	env := newWorkerEnv(t, fixture.WorkerPolicy())
	env.firstDecision(300)
	before := env.worker.Described
	for range 10 {
		env.reconcile()
	}
	require.Equal(t, before, env.worker.Described)
	env.after(30 * time.Second)
	env.reconcile()
	require.Equal(t, before+1, env.worker.Described)
}

func TestAWorkerIsReadAndNotChangedInModePaused(t *testing.T) {
	p := fixture.WorkerPolicy()
	p.Spec.Mode = v1alpha1.ModePaused
	env := newWorkerEnv(t, p)
	env.reconcile()
	env.answer(700, 10_000)
	env.reconcile()
	require.Empty(t, env.worker.Updates)
	require.Equal(t, int32(3), *env.policy().Status.SpecReplicas)
	require.Equal(t, int64(700), *env.policy().Status.Signals.ReadyMessages)
	status, _ := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Paused", status)

	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeAuto })
	env.reconcile()
	require.Equal(t, []int32{7}, env.worker.Updates)
}

func TestWhatTheWorkerRunsInKubernetesIsRefused(t *testing.T) {
	set := cluster.NewUnstructured(cluster.KindStatefulSet)
	set.SetNamespace(fixture.Namespace)
	set.SetName("pf-public-default-resize")
	env := newWorkerEnv(t, fixture.WorkerPolicy(), set)
	env.reconcile()
	status, message := env.condition(v1alpha1.ConditionTargetFound)
	require.Equal(t, "False/TargetInvalid", status)
	require.Contains(t, message,
		"set spec.scaleTargetRef to apiVersion apps/v1, kind StatefulSet, name pf-public-default-resize")
	require.Zero(t, env.worker.Described)
}

func TestOneFunctionOfAWorkerHasOnePolicyWhateverItsNamespace(t *testing.T) {
	older := fixture.WorkerPolicy()
	older.Namespace, older.Name, older.UID = "other", "first", "uid-first"
	older.CreationTimestamp = metav1.NewTime(older.CreationTimestamp.Add(-time.Hour))
	env := newWorkerEnv(t, fixture.WorkerPolicy(), older)
	env.firstDecision(700)
	require.Empty(t, env.worker.Updates)
	status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "False/OlderPolicy", status)
	require.Contains(t, message, "AutoscalingPolicy other/first is older")

	older.Spec.Pulsar.AdminURL = "http://elsewhere:8080"
	env = newWorkerEnv(t, fixture.WorkerPolicy(), older)
	env.firstDecision(700)
	require.Equal(t, []int32{7}, env.worker.Updates, "a function of that name in another cluster")
}
