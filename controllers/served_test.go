// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
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
	resources []metav1.APIResource
	err       error
	asked     []string
}

func (f *fakeResources) ServerResourcesForGroupVersionWithContext(_ context.Context, groupVersion string) (*metav1.APIResourceList, error) {
	f.asked = append(f.asked, groupVersion)
	return &metav1.APIResourceList{APIResources: f.resources}, f.err
}

// TestKEDAThatIsUninstalledIsNotThere: memory falls empty and says nothing of it.
func TestKEDAThatIsUninstalledIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var installed bool
		scaledObjects := metav1.APIResource{Name: "scaledobjects", Kind: kindScaledObject, Verbs: metav1.Verbs{"get", "list", "create", "delete"}}
		leaving := metav1.APIResource{Name: "scaledobjects", Kind: kindScaledObject, Verbs: metav1.Verbs{"get", "list", "delete"}}
		others := metav1.APIResource{Name: "scaledjobs", Kind: "ScaledJob", Verbs: metav1.Verbs{"create"}}
		server := &fakeResources{}
		s := &served{kind: kindScaledObject, resources: server, installed: func(string) bool { return installed }, every: lookForKindEvery}
		done := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- s.Start(ctx) }()
		afterALook := func() bool {
			time.Sleep(lookForKindEvery)
			synctest.Wait()
			return s.there()
		}
		require.False(t, afterALook())
		require.Empty(t, server.asked, "it was never there")

		installed = true
		require.True(t, s.there())
		server.resources = []metav1.APIResource{others, scaledObjects}
		require.True(t, afterALook())
		require.Equal(t, []string{"keda.sh/v1alpha1"}, server.asked)

		server.resources = []metav1.APIResource{others, leaving}
		require.False(t, afterALook(), "an object holds up the deletion of the CustomResourceDefinition")
		server.resources = []metav1.APIResource{others}
		require.False(t, afterALook())
		server.resources, server.err = nil, errors.New("the API server is busy")
		require.False(t, afterALook(), "what was known stays")
		server.resources, server.err = []metav1.APIResource{scaledObjects}, nil
		require.True(t, afterALook(), "it is back")
		server.err = errors.New("the API server is busy")
		require.True(t, afterALook())
		server.err = apierrors.NewNotFound(schema.GroupResource{}, "")
		require.False(t, afterALook(), "the group went with it")
		cancel()
		require.NoError(t, <-done)
	})
}
