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

// fakeResources answers as an API server that has some resources of a group, or fails.
type fakeResources struct {
	// mu guards all below.
	mu        sync.Mutex
	resources []metav1.APIResource
	err       error
	asked     []string
}

func (f *fakeResources) answer(err error, resources ...metav1.APIResource) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resources, f.err = resources, err
}

func (f *fakeResources) questions() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

func (f *fakeResources) ServerResourcesForGroupVersionWithContext(_ context.Context,
	groupVersion string,
) (*metav1.APIResourceList, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, groupVersion)
	return &metav1.APIResourceList{APIResources: f.resources}, f.err
}

// TestKEDAThatIsUninstalledIsNotThere: memory falls empty and says nothing of it.
func TestKEDAThatIsUninstalledIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var installed atomic.Bool
		scaledObjects := metav1.APIResource{
			Name: "scaledobjects", Kind: KindScaledObject,
			Verbs: metav1.Verbs{"get", "list", "create", "delete"},
		}
		leaving := metav1.APIResource{
			Name: "scaledobjects", Kind: KindScaledObject,
			Verbs: metav1.Verbs{"get", "list", "delete"},
		}
		others := metav1.APIResource{Name: "scaledjobs", Kind: "ScaledJob", Verbs: metav1.Verbs{"create"}}
		server := &fakeResources{}
		s := &published{
			kind: KindScaledObject, resources: server, installed: func(string) bool { return installed.Load() },
			every: DiscoveryInterval,
		}
		done := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- s.Start(ctx) }()
		afterALook := func() bool {
			time.Sleep(DiscoveryInterval)
			synctest.Wait()
			return s.available()
		}
		require.False(t, afterALook())
		require.Empty(t, server.questions(), "it was never there")

		installed.Store(true)
		require.True(t, s.available())
		server.answer(nil, others, scaledObjects)
		require.True(t, afterALook())
		require.Equal(t, []string{"keda.sh/v1alpha1"}, server.questions())

		server.answer(nil, others, leaving)
		require.False(t, afterALook(), "an object holds up the deletion of the CustomResourceDefinition")
		server.answer(nil, others)
		require.False(t, afterALook())
		server.answer(errors.New("the API server is busy"))
		require.False(t, afterALook(), "what was known stays")
		server.answer(nil, scaledObjects)
		require.True(t, afterALook(), "it is back")
		server.answer(errors.New("the API server is busy"), scaledObjects)
		require.True(t, afterALook())
		server.answer(apierrors.NewNotFound(schema.GroupResource{}, ""))
		require.False(t, afterALook(), "the group went with it")
		cancel()
		require.NoError(t, <-done)
	})
}
