// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// newManager returns a manager for the API server at the URL, which serves ConfigMaps.
func newManager(t *testing.T, url string) ctrl.Manager {
	t.Helper()
	m, err := ctrl.NewManager(&rest.Config{Host: url}, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
			return mapper, nil
		},
	})
	require.NoError(t, err)
	return m
}

// start runs the manager. end ends it and returns its error.
func start(t *testing.T, m ctrl.Manager) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, m) }()
	return func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(time.Minute):
			t.Fatal("the manager does not end")
			return nil
		}
	}
}

func TestAManagerEndsWhileItReadsItsCaches(t *testing.T) {
	requested := make(chan struct{}, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case requested <- struct{}{}:
		default:
		}
		http.Error(w, "forbidden", http.StatusForbidden)
	}))
	t.Cleanup(api.Close)
	m := newManager(t, api.URL)
	_, err := m.GetCache().GetInformer(t.Context(), &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	require.NoError(t, err)
	end := start(t, m)
	<-requested
	require.NoError(t, end())
}

func TestAManagerEndsAfterItsRunnables(t *testing.T) {
	m := newManager(t, "http://127.0.0.1:1")
	started, ended := make(chan struct{}), false
	require.NoError(t, m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		close(started)
		<-ctx.Done()
		<-time.After(50 * time.Millisecond)
		ended = true
		return nil
	})))
	end := start(t, m)
	<-started
	require.NoError(t, end())
	require.True(t, ended)
}
