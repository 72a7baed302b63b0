// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// testDiscovery discovers one kind without an index.
func testDiscovery(t *testing.T, kind string, mapper restMapper, informers cache.Cache) Discovery {
	t.Helper()
	d, err := NewDiscovery(DiscoveryConfig{
		Mapper: mapper, Cache: informers, Kinds: []string{kind},
		Index: func(string) (string, client.IndexerFunc) { return "", nil },
	})
	require.NoError(t, err)
	return d
}

func TestFunctionsAreWatchedOnceTheirKindIsInstalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mapper := &fixture.LateKind{}
		watched := make(chan struct{})
		d := testDiscovery(t, KindSink, mapper, &informertest.FakeInformers{Scheme: runtime.NewScheme()})
		first := false
		d.OnSynced(KindSink, func() error { first = true; return nil })
		d.OnSynced(KindSink, func() error { close(watched); return nil })
		require.Equal(t, []string{KindSink}, d.Pending())
		done := make(chan error, 1)
		go func() { done <- d[KindSink].Start(t.Context()) }()
		require.NoError(t, d.WaitForSync(t.Context(), KindSink), "an absent kind delays nothing")
		require.False(t, d.Installed(KindSink))
		require.True(t, d.Absent(KindSink))
		require.Empty(t, d.Pending())

		synctest.Wait()
		mapper.Installed.Store(true)
		<-watched
		require.True(t, first)
		require.NoError(t, <-done)
		require.True(t, d.Installed(KindSink))
		require.False(t, d.Absent(KindSink))
	})
}

func TestWorkersWaitForFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := testDiscovery(t, KindSink, &fixture.LateKind{}, &informertest.FakeInformers{})
		timed, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		require.ErrorIs(t, d.WaitForSync(timed, KindSink), errKindsNotRead)
		stopped, stop := context.WithCancel(t.Context())
		stop()
		require.NoError(t, d.WaitForSync(stopped, KindSink))
	})
}

func TestOptionalKindsDelayNothing(t *testing.T) {
	for _, kind := range []string{KindScaledObject, KindVerticalPodAutoscaler} {
		t.Run(kind+" that may not be read", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				unread := controllertest.NewFakeInformer()
				known := &fixture.LateKind{}
				known.Installed.Store(true)
				watched := make(chan struct{})
				d := testDiscovery(t, kind, known, &informertest.FakeInformers{
					Scheme:         runtime.NewScheme(),
					InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{GVK(kind): unread},
				})
				d.OnSynced(kind, func() error { close(watched); return nil })
				done := make(chan error, 1)
				go func() { done <- d[kind].Start(t.Context()) }()
				timed, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // controller-runtime's CacheSyncTimeout
				defer cancel()
				require.NoError(t, d.WaitForSync(timed, kind))
				require.False(t, d.Installed(kind))

				unread.Synced()
				<-watched
				require.NoError(t, <-done)
				require.True(t, d.Installed(kind), "the permission was granted meanwhile")
			})
		})
		t.Run(kind+" that cannot be looked for", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				known := &fixture.LateKind{}
				known.Installed.Store(true)
				d := testDiscovery(t, kind, known, &informertest.FakeInformers{
					Scheme: runtime.NewScheme(), Error: errors.New("forbidden"),
				})
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- d[kind].Start(ctx) }()
				timed, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				require.NoError(t, d.WaitForSync(timed, kind))
				stop()
				require.NoError(t, <-done)
			})
		})
	}
}

func TestDiscoveryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mapper := &fixture.LateKind{}
		mapper.Installed.Store(true)
		d := testDiscovery(t, KindSink, mapper, &informertest.FakeInformers{
			Scheme: runtime.NewScheme(), Error: errors.New("the API server is away"),
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		require.NoError(t, d[KindSink].Start(ctx), "a failed check is retried")
		require.False(t, d.Installed(KindSink))
	})
}

// A controller that starts holds a lock that a new watch needs, until all kinds are discovered. A manager that stops
// ends discovery first.
func TestDiscoveryEndsWhileAControllerStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		installed := &fixture.LateKind{}
		installed.Installed.Store(true)
		d := testDiscovery(t, KindSink, installed, &informertest.FakeInformers{Scheme: runtime.NewScheme()})
		watching, started := make(chan struct{}), make(chan struct{})
		d.OnSynced(KindSink, func() error { close(watching); <-started; return nil })
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d[KindSink].Start(ctx) }()
		<-watching
		stop()
		require.NoError(t, <-done)
		close(started)
	})
}

func TestDiscoveryConfigIsChecked(t *testing.T) {
	_, err := NewDiscovery(DiscoveryConfig{})
	require.EqualError(t, err, "discovery: Mapper, Cache, Kinds and Index must be set")
}

func TestAllKindsMayBeOptional(t *testing.T) {
	for _, optional := range []bool{true, false} {
		d, err := NewDiscovery(DiscoveryConfig{
			Mapper: &fixture.LateKind{}, Cache: &informertest.FakeInformers{}, Kinds: []string{KindSink, KindScaledObject},
			Index: func(string) (string, client.IndexerFunc) { return "", nil }, Optional: optional,
		})
		require.NoError(t, err)
		require.Equal(t, optional, d[KindSink].optional)
		require.True(t, d[KindScaledObject].optional)
	}
}

type watched struct {
	cache.Informers
	cache.Informer
	handler toolscache.ResourceEventHandler
}

func (w *watched) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return w, nil
}

func (w *watched) AddEventHandler(handler toolscache.ResourceEventHandler) (
	toolscache.ResourceEventHandlerRegistration, error,
) {
	w.handler = handler
	return nil, nil //nolint:nilnil // nothing asks for it
}

func TestFollowReportsAMissedDeletion(t *testing.T) {
	w := &watched{}
	existing := map[types.NamespacedName]bool{}
	_, err := Follow(t.Context(), w, NewObject(KindSink), func(key types.NamespacedName, object client.Object) {
		existing[key] = object != nil
	})
	require.NoError(t, err)
	kept, missed := NewObject(KindSink), NewObject(KindSink)
	kept.SetName("kept")
	missed.SetName("missed")
	w.handler.OnAdd(kept, true)
	w.handler.OnUpdate(missed, missed)
	w.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "missed"})
	require.Equal(t, map[types.NamespacedName]bool{{Name: "kept"}: true, {Name: "missed"}: false}, existing)
}
