// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fakeResources is an API server with resources of a group, or with an error.
type fakeResources struct {
	// mu guards all below.
	mu        sync.Mutex
	resources []metav1.APIResource
	err       error
	requests  []string
}

func (f *fakeResources) respond(err error, resources ...metav1.APIResource) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resources, f.err = resources, err
}

func (f *fakeResources) requested() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

func (f *fakeResources) ServerResourcesForGroupVersionWithContext(_ context.Context,
	groupVersion string,
) (*metav1.APIResourceList, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, groupVersion)
	return &metav1.APIResourceList{APIResources: f.resources}, f.err
}

// The cache only becomes empty when KEDA is uninstalled.
func TestUninstalledKEDAIsNotAvailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var installed atomic.Bool
		scaledObjects := metav1.APIResource{
			Name: "scaledobjects", Kind: KindScaledObject,
			Verbs: metav1.Verbs{"get", "list", "create", "delete"},
		}
		terminating := metav1.APIResource{
			Name: "scaledobjects", Kind: KindScaledObject,
			Verbs: metav1.Verbs{"get", "list", "delete"},
		}
		others := metav1.APIResource{Name: "scaledjobs", Kind: "ScaledJob", Verbs: metav1.Verbs{"create"}}
		server := &fakeResources{}
		s := &published{
			resources: server, installed: func(string) bool { return installed.Load() },
		}
		done := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- s.Start(ctx) }()
		afterCheck := func() bool {
			time.Sleep(DiscoveryInterval)
			synctest.Wait()
			return s.available()
		}
		require.False(t, afterCheck())
		require.Empty(t, server.requested(), "no check before the first sync")

		installed.Store(true)
		require.True(t, s.available())
		server.respond(nil, others, scaledObjects)
		require.True(t, afterCheck())
		require.Equal(t, []string{"keda.sh/v1alpha1"}, server.requested())

		server.respond(nil, others, terminating)
		require.False(t, afterCheck(), "a finalizer delays the deletion of the CustomResourceDefinition")
		server.respond(nil, others)
		require.False(t, afterCheck())
		server.respond(errors.New("the API server is busy"))
		require.False(t, afterCheck(), "a failed check changes nothing")
		server.respond(nil, scaledObjects)
		require.True(t, afterCheck(), "installed again")
		server.respond(errors.New("the API server is busy"), scaledObjects)
		require.True(t, afterCheck())
		server.respond(apierrors.NewNotFound(schema.GroupResource{}, ""))
		require.False(t, afterCheck(), "the group is gone")
		cancel()
		require.NoError(t, <-done)
	})
}
