// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// copied is a cache that has everything as it is now.
func (env *testEnv) copied() client.Client {
	env.t.Helper()
	lists := []client.ObjectList{
		&v1alpha1.AutoscalingPolicyList{}, &autoscalingv2.HorizontalPodAutoscalerList{}, &corev1.ConfigMapList{},
	}
	for _, kind := range cluster.CachedKinds() {
		lists = append(lists, cluster.NewUnstructuredList(kind))
	}
	var objects []client.Object
	for _, list := range lists {
		require.NoError(env.t, env.client.List(env.t.Context(), list))
		require.NoError(env.t, meta.EachListItem(list, func(item runtime.Object) error {
			object, _ := item.(client.Object) // all are
			objects = append(objects, object)
			return nil
		}))
	}
	return server(env.client.Scheme(), objects...).Build()
}

// TestWhatADeletedPolicyRestoredIsRestoredOnce: the next policy may suspend it before the cache shows that the deleted
// one is gone.
func TestWhatADeletedPolicyRestoredIsRestoredOnce(t *testing.T) {
	env := takingOver(t, foreignAutoscalers()...)
	env.reconcile()
	env.until("our autoscaler", env.scaling)
	require.NoError(t, env.client.Delete(t.Context(), fixture.Policy()))
	var before client.Client
	for range 10 {
		if env.gone() {
			break
		}
		before = env.copied()
		env.pass()
	}
	require.True(t, env.gone())
	env.requireRestored()
	theirs, err := env.find("theirs")
	require.NoError(t, err)
	for _, suspended := range []client.Client{env.client, before} {
		require.NoError(t, suspended.Delete(t.Context(), theirs))
	}
	env.events()
	for range 3 {
		env.late = before
		env.reconcile()
		env.late = nil
		theirs, err = env.find("theirs")
		require.NoError(t, err)
		require.Nil(t, theirs)
		require.Empty(t, env.events())
		env.after(testInterval)
	}
	env.reconcile()
	require.Zero(t, env.reconciler.memories.count(), "nothing stays of it")
}
