// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

// pathsServer is an API server without objects, which records the paths of requests.
type pathsServer struct {
	*httptest.Server
	mu    sync.Mutex
	paths []string
}

func newPathsServer(t *testing.T) *pathsServer {
	t.Helper()
	s := &pathsServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if !slices.Contains(s.paths, r.URL.Path) {
			s.paths = append(s.paths, r.URL.Path)
		}
		s.mu.Unlock()
		if r.URL.Query().Get("sendInitialEvents") != "" {
			http.Error(w, "lists alone", http.StatusBadRequest)
			return
		}
		if r.URL.Query().Get("watch") != "" {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush() //nolint:forcetypeassert // net/http's
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`))
	}))
	t.Cleanup(s.Close)
	return s
}

func TestTheCacheReadsChosenNamespacesAlone(t *testing.T) {
	api := newPathsServer(t)
	scheme, err := Scheme()
	require.NoError(t, err)
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		cluster.GVK(cluster.KindPolicy), coordinationv1.SchemeGroupVersion.WithKind("Lease"),
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
		mapper.Add(kind.GroupVersion().WithKind(kind.Kind+"List"), meta.RESTScopeNamespace) // as client-go's has
	}
	options := CacheOptions(types.NamespacedName{Namespace: "autoscaling", Name: "adapter"}, []string{"media", "billing"})
	options.Scheme, options.Mapper = scheme, mapper
	found, err := NewCache(&rest.Config{Host: api.URL}, options)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- found.Start(t.Context()) }()
	t.Cleanup(func() { require.NoError(t, <-ended) })
	require.True(t, found.WaitForCacheSync(t.Context()))

	var policies v1alpha1.AutoscalingPolicyList
	require.NoError(t, found.List(t.Context(), &policies))
	require.NoError(t, found.List(t.Context(), &policies, client.InNamespace("media")))
	require.NoError(t, found.List(t.Context(), &coordinationv1.LeaseList{}, client.InNamespace("autoscaling")))
	err = found.List(t.Context(), &policies, client.InNamespace("shop"))
	require.ErrorIs(t, err, backlog.ErrUnsupported)
	require.ErrorContains(t, err, "namespace shop is not read: add it to watchNamespaces of the chart (--watch-namespaces)")
	err = found.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "resize"}, &v1alpha1.AutoscalingPolicy{})
	require.ErrorIs(t, err, backlog.ErrUnsupported)

	api.mu.Lock()
	paths := slices.Clone(api.paths)
	api.mu.Unlock()
	require.ElementsMatch(t, []string{
		"/apis/pulsar-autoscaler.io/v1alpha1/namespaces/media/autoscalingpolicies",
		"/apis/pulsar-autoscaler.io/v1alpha1/namespaces/billing/autoscalingpolicies",
		"/apis/coordination.k8s.io/v1/namespaces/autoscaling/leases",
	}, paths)
}
