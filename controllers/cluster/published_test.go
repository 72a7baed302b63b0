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

// A new leader that misses KEDA at first would change the actuator, and change it back. The cache only becomes empty
// when KEDA is uninstalled.
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
		env := newTestEnv(t, &fakeServer{}, func(c *CapabilitiesConfig) {
			c.Resources, c.Installed = server, func(string) bool { return installed.Load() }
		}, pointing("v1beta2.custom.metrics.k8s.io", 200, "pulsar-autoscaler/adapter"))
		afterCheck := func() bool {
			time.Sleep(refreshInterval)
			synctest.Wait()
			return env.Now().KEDA
		}
		require.False(t, afterCheck())
		require.Empty(t, server.requested(), "no check before the first sync")
		require.Zero(t, env.changes.Load())

		installed.Store(true)
		require.True(t, env.Now().KEDA, "before the next refresh")
		server.respond(nil, others, scaledObjects)
		require.True(t, afterCheck())
		require.Equal(t, int32(1), env.changes.Load(), "policies are enqueued")
		require.Equal(t, []string{"keda.sh/v1alpha1"}, server.requested())

		server.respond(nil, others, terminating)
		require.False(t, afterCheck(), "a finalizer delays the deletion of the CustomResourceDefinition")
		require.Equal(t, int32(2), env.changes.Load())
		server.respond(nil, others)
		require.False(t, afterCheck())
		env.log.take()
		server.respond(errors.New("the API server is busy"))
		require.False(t, afterCheck(), "a failed check changes nothing")
		require.False(t, afterCheck())
		require.Len(t, env.log.take(), 1, "of several failures the first is logged")
		server.respond(nil, scaledObjects)
		require.True(t, afterCheck(), "installed again")
		server.respond(errors.New("the API server is busy"), scaledObjects)
		require.True(t, afterCheck())
		server.respond(apierrors.NewNotFound(schema.GroupResource{}, ""))
		require.False(t, afterCheck(), "the group is gone")
	})
}
