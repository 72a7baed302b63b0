// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// atZero is a Function without replicas, as its policy has decided, with messages since.
func atZero(t *testing.T, env *testEnv) {
	t.Helper()
	env.firstDecision(0)
	require.Zero(t, *env.policy().Status.DesiredReplicas)
	env.events()
	env.after(testInterval)
	env.answer(2, 10_002)
}

func idleFunction() *unstructured.Unstructured {
	function := fixture.Function()
	fixture.Spec(function)["replicas"] = int64(0)
	return function
}

func TestADirectWakeIsOneWriteAndReportedOnceLater(t *testing.T) {
	env := newTestEnv(t, idleFunction(), idlePolicy(v1alpha1.ActuatorDirect), fixture.ConfigMap())
	atZero(t, env)
	require.Equal(t, []string{"scale 1"}, env.reconcile())
	env.after(soon / 2)
	require.Empty(t, env.reconcile(), "the own write came back")
	require.Empty(t, env.events())
	env.after(soon / 2)
	require.Equal(t, []string{"patch status"}, env.reconcile())
	require.Equal(t, int32(1), *env.policy().Status.SpecReplicas)
	require.Equal(t, int32(1), *env.policy().Status.DesiredReplicas)
	events := env.events()
	require.Len(t, events, 1)
	require.Contains(t, events[0], "DesiredReplicasChanged 0 -> 1: woken from zero: 2 backlog", "what woke it")
	require.Empty(t, env.reconcile())
}

func TestAWakeThatIsUndoneIsReported(t *testing.T) {
	env := newTestEnv(t, idleFunction(), idlePolicy(v1alpha1.ActuatorDirect), fixture.ConfigMap())
	atZero(t, env)
	require.Equal(t, []string{"scale 1"}, env.reconcile())
	env.scaleManually(0)
	env.after(soon)
	require.Equal(t, []string{"scale 1", "patch status"}, env.reconcile())
	require.Equal(t, int32(1), *env.policy().Status.DesiredReplicas)
}

// TestTheNextLeaderFinishesAWake: the status is written after the replicas, and a leader may die between the two.
func TestTheNextLeaderFinishesAWake(t *testing.T) {
	for name, arrives := range map[string]bool{"the write of replicas arrived": true, "it was lost": false} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, idleFunction(), idlePolicy(v1alpha1.ActuatorDirect), fixture.ConfigMap())
			atZero(t, env)
			env.reconcile()
			require.Equal(t, int64(1), env.replicas())
			if !arrives {
				env.scaleManually(0)
			}
			env.restart()
			if !arrives {
				require.Equal(t, []string{"scale 1"}, env.reconcile())
				env.after(soon)
			}
			require.Equal(t, []string{"patch status"}, env.reconcile())
			require.Equal(t, int64(1), env.replicas())
			require.Equal(t, int32(1), *env.policy().Status.DesiredReplicas)
		})
	}
}

func TestAnAutoscalersWakeWritesTheStatusFirstAndNoSecondOneAtOnce(t *testing.T) {
	env := newTestEnv(t, idleFunction(), idlePolicy(v1alpha1.ActuatorHPA), fixture.ConfigMap())
	atZero(t, env)
	require.Equal(t, []string{"patch status", "scale 1"}, env.reconcile(), "it resumes from the status")
	require.Empty(t, env.reconcile())
	env.after(soon)
	require.Equal(t, []string{"patch status"}, env.reconcile())
	require.Equal(t, int32(1), *env.policy().Status.SpecReplicas)
}

// TestAWakeBesideKEDAIsReportedAtOnce: until then the scaler says that the target is inactive, and KEDA would scale it
// to zero again.
func TestAWakeBesideKEDAIsReportedAtOnce(t *testing.T) {
	env := newKEDAEnv(t, idleFunction(), idlePolicy(v1alpha1.ActuatorKEDA))
	atZero(t, env)
	require.Contains(t, env.reconcile(), "scale 1")
	require.True(t, served.BeingWoken(env.policy(), env.now))
	env.reconcile()
	require.False(t, served.BeingWoken(env.policy(), env.now))
}

// TestKEDAWakesWhatTheControllerCannot although each answer changes the decided number.
func TestKEDAWakesWhatTheControllerCannot(t *testing.T) {
	p := idlePolicy(v1alpha1.ActuatorKEDA)
	p.Spec.MaxReplicas = 10_000
	env := newKEDAEnv(t, idleFunction(), p)
	env.now = env.now.Truncate(time.Second)
	atZero(t, env)
	env.reconciler.memories.byKey[fixture.Key()].resume.Capacity = &policy.LearnedCapacity{
		MessagesPerSecond: 10, Observations: 40, Variance: 1e-4, LearnedAt: env.now,
	}
	env.scaleFails = apierrors.NewForbidden(autoscalingv2.Resource("functions/scale"), "resize", nil)
	for i := range 20 {
		_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
		require.ErrorContains(t, err, "scaling Function resize")
		require.Equal(t, env.now.Unix(), env.policy().Status.Decision.Time.Unix(), "another number")
		require.Equal(t, i < 2, served.BeingWoken(env.policy(), env.now), "after %d s", 5*i)
		env.after(5 * time.Second)
		more := int64(1000 * (i + 1) * (i + 1))
		env.answer(more, 10_000+more)
	}
	env.scaleFails = nil
	env.reconcile()
	env.reconcile()
	status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.NotContains(t, status, v1alpha1.ReasonScaleFailed, message)
}

// TestAnErrorIsThatOfThisReconcile: without an autoscaler that is applied, no replicas are written.
func TestAnErrorIsThatOfThisReconcile(t *testing.T) {
	env := newKEDAEnv(t, idleFunction(), idlePolicy(v1alpha1.ActuatorKEDA))
	atZero(t, env)
	env.scaleFails = apierrors.NewServiceUnavailable("etcd is away")
	_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.ErrorContains(t, err, "etcd is away")
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MaxReplicas = 30 })
	env.scaleFails, env.applyFails = nil, apierrors.NewBadRequest("maxReplicaCount is at most 20 in a")
	require.NotContains(t, env.reconcile(), "scale 1")
	status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "False/"+v1alpha1.ReasonRefused, status, message)
}

func TestAWakeThatFailsIsReportedAtOnce(t *testing.T) {
	env := newTestEnv(t, idleFunction(), idlePolicy(v1alpha1.ActuatorDirect), fixture.ConfigMap())
	atZero(t, env)
	env.scaleFails = apierrors.NewServiceUnavailable("etcd is away")
	_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.ErrorContains(t, err, "etcd is away")
	_, message := env.condition(v1alpha1.ConditionReady)
	require.Contains(t, message, "etcd is away")
}

// crowd runs the controller with many policies, its workers and its queue.
type crowd struct {
	*testEnv

	topics []backlog.Topic
}

// newCrowd starts a controller, which stops at the end of the test's bubble. Each policy scales a Function with these
// replicas as the given policy does.
func newCrowd(t *testing.T, many int, as *v1alpha1.AutoscalingPolicy, replicas int64) *crowd {
	t.Helper()
	var objects []client.Object
	var topics []backlog.Topic
	for i := range many {
		p, function := numbered(i)
		p.Spec.ScalingSpec, fixture.Spec(function)["replicas"] = as.Spec.ScalingSpec, replicas
		objects = append(objects, p, function)
		topics = append(topics, topicOf(p.Name))
	}
	c := &crowd{newTestEnv(t, append(objects, fixture.ConfigMap())...), topics}
	c.now, c.recorder.Events = time.Time{}, nil
	running, err := controller.NewUnmanaged("crowd", controller.Options{
		Reconciler: c.reconciler, MaxConcurrentReconciles: workers, SkipNameValidation: new(true),
	})
	require.NoError(t, err)
	require.NoError(t, running.Watch(source.Func(
		func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			for _, object := range objects {
				if _, ours := object.(*v1alpha1.AutoscalingPolicy); ours {
					queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
				}
			}
			return c.reconciler.interest.start(ctx, queue)
		})))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- running.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	synctest.Wait()
	return c
}

// written returns the writes since the last call.
func (c *crowd) written() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.writes = nil }()
	return c.writes
}

// answers returns what is written at once after an answer about each topic.
func (c *crowd) answers(waiting, published int64) []string {
	c.written()
	for _, topic := range c.topics {
		c.store.Record(topic, fixture.Sample(time.Now(), waiting, published))
		c.reconciler.interest.notify(topic)
	}
	synctest.Wait()
	return c.written()
}

func TestOfManyThatWakeAllHaveReplicasBeforeTheFirstStatus(t *testing.T) {
	const many = 100
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, many, idlePolicy(v1alpha1.ActuatorDirect), 0)
		require.Equal(t, slices.Repeat([]string{"patch status"}, many), c.answers(0, 10_000))
		time.Sleep(testInterval / 2)
		require.Equal(t, slices.Repeat([]string{"scale 1"}, many), c.answers(500, 10_500))
		time.Sleep(soon)
		synctest.Wait()
		require.Equal(t, slices.Repeat([]string{"patch status"}, many), c.written())
	})
}

// TestReplicasDoNotWaitForTheStatusesOfOthers: a busy API server takes long for each, and all are written in the end.
func TestReplicasDoNotWaitForTheStatusesOfOthers(t *testing.T) {
	const many = 100
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, many, directPolicy(), 3)
		time.Sleep(time.Second)
		c.statusTakes = time.Second
		writes := c.answers(700, 10_000)
		statuses := func(write string) bool { return write == "patch status" }
		require.Equal(t, slices.Repeat([]string{"scale 7"}, many), slices.DeleteFunc(writes, statuses))
		time.Sleep(2 * many * c.statusTakes / workers) // some have a second status meanwhile, with their new replicas
		synctest.Wait()
		var all v1alpha1.AutoscalingPolicyList
		require.NoError(t, c.client.List(t.Context(), &all))
		for _, p := range all.Items {
			require.Equal(t, new(int32(7)), p.Status.DesiredReplicas)
		}
	})
}
