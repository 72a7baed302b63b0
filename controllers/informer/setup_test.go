// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestPoliciesAreReadOnceTheirKindIsInstalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme, err := Scheme()
		require.NoError(t, err)
		api := &fixture.LateKind{}
		told := make(chan types.NamespacedName, 10)
		informer := controllertest.NewFakeInformer()
		informers := &informertest.FakeInformers{
			Scheme: scheme,
			InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{
				cluster.GVK(cluster.KindPolicy): informer,
			},
		}
		discovery, err := cluster.NewDiscovery(cluster.DiscoveryConfig{
			Mapper: api, Cache: informers, Kinds: []string{cluster.KindPolicy}, Index: readIndexOf, Optional: true,
		})
		require.NoError(t, err)
		discovery.OnSynced(cluster.KindPolicy, func() error {
			return notifyOfPolicies(t.Context(), informers, func(policy types.NamespacedName) { told <- policy })
		})
		key := types.NamespacedName{Namespace: "media", Name: "resize"}
		resize := &v1alpha1.AutoscalingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		policies := &Policies{
			reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(resize).Build(),
			unread: func() error { return unread(discovery, cluster.KindPolicy) },
		}
		reading := &Informers{discovery: discovery}
		require.ErrorIs(t, reading.Ready(), backlog.ErrNoData)
		_, err = policies.Policy(key)
		require.ErrorIs(t, err, backlog.ErrNoData)

		done := make(chan error, 1)
		go func() { done <- discovery[cluster.KindPolicy].Start(t.Context()) }()
		require.NoError(t, discovery.WaitForSync(t.Context(), cluster.KindPolicy))
		require.NoError(t, reading.Ready(), "an absent kind delays nothing")
		_, err = policies.Policy(key)
		require.ErrorIs(t, err, backlog.ErrUnsupported)
		require.ErrorContains(t, err,
			"kind AutoscalingPolicy of pulsar-autoscaler.io/v1alpha1 is not installed in this cluster: install the "+
				"CustomResourceDefinition of pulsar-autoscaler, or set target, function, sink or topic in place of policy")

		synctest.Wait()
		api.Installed.Store(true)
		informer.Synced()
		require.NoError(t, <-done)
		found, err := policies.Policy(key)
		require.NoError(t, err)
		require.Equal(t, key.Name, found.Name)

		informer.Add(resize)
		informer.Update(resize, resize)
		informer.Delete(resize)
		for range 3 {
			require.Equal(t, key, <-told)
		}
		require.Empty(t, told)
	})
}

func TestReadKindsHaveVersions(t *testing.T) {
	for _, kind := range readKinds() {
		require.NotEmpty(t, cluster.GVK(kind).Version, kind)
	}
}

func TestPoliciesAreUnknownBeforeTheCacheHasThem(t *testing.T) {
	synced := false
	policies := NewPolicies(fake.NewClientBuilder().Build(), func() bool { return synced })
	_, err := policies.Policy(types.NamespacedName{Namespace: "media", Name: "resize"})
	require.ErrorIs(t, err, backlog.ErrNoData, "not NotFound")
	synced = true
	_, err = policies.Policy(types.NamespacedName{Namespace: "media", Name: "resize"})
	require.NotErrorIs(t, err, backlog.ErrNoData)
}

func TestAnIncompleteConfigurationIsRefused(t *testing.T) {
	_, err := New(nil, nil, Config{Store: &backlog.Store{}, Clock: time.Now})
	require.ErrorContains(t, err, "must be set")
}
