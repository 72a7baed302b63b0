// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
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

func TestAWakeThatFailsIsReportedAtOnce(t *testing.T) {
	env := newTestEnv(t, idleFunction(), idlePolicy(v1alpha1.ActuatorDirect), fixture.ConfigMap())
	atZero(t, env)
	env.scaleFails = apierrors.NewServiceUnavailable("etcd is away")
	_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.ErrorContains(t, err, "etcd is away")
	_, message := env.condition(v1alpha1.ConditionReady)
	require.Contains(t, message, "etcd is away")
}

// manyAtZero are policies with Functions at zero, and the topics of these.
func manyAtZero(many int) (objects []client.Object, topics []backlog.Topic) {
	for i := range many {
		name := fmt.Sprint("fn-", i)
		p, function := idlePolicy(v1alpha1.ActuatorDirect), idleFunction()
		p.Name, p.UID, p.Spec.ScaleTargetRef.Name = name, types.UID(name), name
		function.SetName(name)
		fixture.Spec(function)["subscriptionName"] = "public/default/resize"
		fixture.Spec(function)["input"] = map[string]any{"topics": []any{name}}
		objects = append(objects, p, function)
		topics = append(topics, backlog.Topic{Cluster: fixture.Cluster(), Name: "persistent://public/default/" + name})
	}
	return append(objects, fixture.ConfigMap()), topics
}

// TestOfManyThatWakeAllHaveReplicasBeforeTheFirstStatus runs the controller with its workers and its queue.
func TestOfManyThatWakeAllHaveReplicasBeforeTheFirstStatus(t *testing.T) {
	const many = 100
	synctest.Test(t, func(t *testing.T) {
		objects, topics := manyAtZero(many)
		env := newTestEnv(t, objects...)
		env.now, env.recorder.Events = time.Time{}, nil
		c, err := controller.NewUnmanaged("wake", controller.Options{
			Reconciler: env.reconciler, MaxConcurrentReconciles: workers, SkipNameValidation: new(true),
		})
		require.NoError(t, err)
		start := func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			for _, object := range objects {
				if _, ours := object.(*v1alpha1.AutoscalingPolicy); ours {
					queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
				}
			}
			return notifications{interest: env.reconciler.interest}.Start(ctx, queue)
		}
		require.NoError(t, c.Watch(source.Func(start)))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Start(ctx) }()
		defer func() {
			stop()
			require.NoError(t, <-ended)
		}()
		synctest.Wait()
		written := func() []string { // since the last call
			env.mu.Lock()
			defer env.mu.Unlock()
			defer func() { env.writes = nil }()
			return env.writes
		}
		answers := func(waiting, published int64) []string {
			written()
			for _, topic := range topics {
				env.store.Record(topic, fixture.Sample(time.Now(), waiting, published))
				env.reconciler.Notify(topic)
			}
			synctest.Wait()
			return written()
		}
		require.Equal(t, slices.Repeat([]string{"patch status"}, many), answers(0, 10_000))
		time.Sleep(testInterval / 2)
		require.Equal(t, slices.Repeat([]string{"scale 1"}, many), answers(500, 10_500))
		time.Sleep(soon)
		synctest.Wait()
		require.Equal(t, slices.Repeat([]string{"patch status"}, many), written())
	})
}
