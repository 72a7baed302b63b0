// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// laggedPolicies run against an API server whose watch is late, in virtual time.
type laggedPolicies struct {
	t          *testing.T
	server     *lateServer
	env        *testEnv
	reconciler *PolicyReconciler
	keys       []types.NamespacedName
}

func newLaggedPolicies(t *testing.T, count int, lag time.Duration) *laggedPolicies {
	t.Helper()
	l := &laggedPolicies{t: t, server: newLateServer(t, lag)}
	for i := range count {
		p, function := numbered(i)
		l.server.put("functions", function)
		l.server.put(v1alpha1.ResourceAutoscalingPolicies, p)
		l.keys = append(l.keys, client.ObjectKeyFromObject(p))
	}
	l.env = newTestEnv(t, fixture.ConfigMap())
	l.env.now = time.Now()
	cached, written := l.clients()
	l.env.configure = func(config *target.Config) {
		config.Workloads, config.Installed = cached, func(kind string) bool { return kind == cluster.KindFunction }
	}
	l.env.restart()
	config := l.env.reconciler.config
	config.Client, config.Clock, config.Registerer = written, time.Now, prometheus.NewRegistry()
	config.Lease = types.NamespacedName{} // not a part of the late server
	config.Recorder = events.NewFakeRecorder(10 * count)
	l.reconciler = newPolicyReconciler(config)
	_, err := cluster.Follow(t.Context(), cached, &v1alpha1.AutoscalingPolicy{}, l.reconciler.memories.cached)
	require.NoError(t, err)
	return l
}

// numbered is a policy with a Function that consumes a topic of its name.
func numbered(i int) (*v1alpha1.AutoscalingPolicy, *unstructured.Unstructured) {
	p, function := fixture.Policy(), fixture.Function()
	p.Name = fmt.Sprint("resize-", i)
	p.UID, p.Spec.ScaleTargetRef.Name = types.UID("uid-"+p.Name), p.Name
	function.SetName(p.Name)
	spec := fixture.Spec(function)
	spec["input"], spec["subscriptionName"] = map[string]any{"topics": []any{p.Name}}, "public/default/resize"
	return p, function
}

// topicOf is the input of a numbered policy's Function.
func topicOf(policy string) backlog.Topic {
	return backlog.Topic{Cluster: fixture.Cluster(), Name: "persistent://public/default/" + policy}
}

// clients are a cache that the server's watches keep, and the client of a manager that reads from it.
func (l *laggedPolicies) clients() (cache.Cache, client.Client) {
	t := l.t
	config := &rest.Config{Host: "http://kubernetes", Transport: l.server, QPS: -1}
	scheme, mapper := l.env.client.Scheme(), meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		v1alpha1.GroupVersion().WithKind(v1alpha1.KindAutoscalingPolicy),
		autoscalingv2.SchemeGroupVersion.WithKind(cluster.KindAutoscaler), cluster.GVK(cluster.KindFunction),
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	read, err := cache.New(config, cache.Options{Scheme: scheme, Mapper: mapper, DefaultTransform: target.Transform})
	require.NoError(t, err)
	require.NoError(t, index(t.Context(), read))
	functions := cluster.NewUnstructured(cluster.KindFunction)
	go func() { _ = read.Start(t.Context()) }()
	for _, object := range []client.Object{
		&v1alpha1.AutoscalingPolicy{}, &autoscalingv2.HorizontalPodAutoscaler{}, functions,
	} {
		_, err := read.GetInformer(t.Context(), object)
		require.NoError(t, err)
	}
	require.True(t, read.WaitForCacheSync(t.Context()))
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper, Cache: &client.CacheOptions{Reader: read}})
	require.NoError(t, err)
	return read, c
}

// answer records that 700 messages wait in each topic.
func (l *laggedPolicies) answer() {
	for _, key := range l.keys {
		l.env.store.Record(topicOf(key.Name), fixture.Sample(time.Now(), 700, 10_000))
	}
}

// reconcile reconciles all policies with the workers of the controller, and returns how long that took.
func (l *laggedPolicies) reconcile() time.Duration {
	began := time.Now()
	queue := make(chan types.NamespacedName)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for key := range queue {
				ctx, cancel := context.WithTimeout(l.t.Context(), reconcileTimeout)
				_, err := l.reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: key})
				cancel()
				if err != nil { // the queue would try again
					l.t.Logf("%s: %s", key.Name, err)
				}
			}
		})
	}
	for _, key := range l.keys {
		queue <- key
	}
	close(queue)
	group.Wait()
	return time.Since(began)
}

func TestALateWatchStopsNoDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 1000
		l := newLaggedPolicies(t, count, 500*time.Millisecond)
		first := l.reconcile()
		l.answer()
		second := l.reconcile()
		decided := 0
		for _, key := range l.keys {
			if l.server.policy(key).Status.DesiredReplicas != nil {
				decided++
			}
		}
		t.Logf("%d of %d policies are decided after %s and %s", decided, count, first, second)
		require.Equal(t, count, decided)
		require.Less(t, first+second, 30*time.Second)
	})
}

func TestAStatusThatReturnsWithinTheLagIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaggedPolicies(t, 1, time.Minute)
		r, key := l.reconciler, l.keys[0]
		for _, replicas := range []int32{3, 7, 3} {
			var cached v1alpha1.AutoscalingPolicy
			require.NoError(t, r.config.Client.Get(t.Context(), key, &cached))
			r.memories.of(&cached, time.Now())
			p := r.memories.latest(&cached)
			version, after := p.ResourceVersion, *p.Status.DeepCopy()
			after.DesiredReplicas = &replicas
			observed := plan.Observed{Subject: plan.Subject{Policy: p, Now: time.Now()}}
			_, err := r.status.write(t.Context(), observed, report.History{}, after)
			require.NoError(t, err)
			require.NotEqual(t, version, p.ResourceVersion)
			r.memories.wrote(t.Context(), r.config.Client, p)
			require.Equal(t, replicas, *l.server.policy(key).Status.DesiredReplicas)
		}
		var cached v1alpha1.AutoscalingPolicy
		require.NoError(t, r.config.Client.Get(t.Context(), key, &cached))
		memory := r.memories.of(&cached, time.Now())
		require.NotNil(t, memory.written.Load())
		time.Sleep(2 * time.Minute)
		require.Nil(t, memory.written.Load(), "the cache has it")
		require.NoError(t, r.config.Client.Get(t.Context(), key, &cached))
		require.Same(t, &cached, r.memories.latest(&cached))
	})
}

func TestWhatTheCacheHasIsNotKeptTwice(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	require.Equal(t, []string{"patch status"}, env.reconcile())
	p := env.policy()
	require.Nil(t, env.reconciler.memories.of(p, env.now).written.Load())
}
