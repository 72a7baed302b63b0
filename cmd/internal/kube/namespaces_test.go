// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// newNamespaces serves an API server without objects. It answers requests in some namespaces with a code.
func newNamespaces(t *testing.T, codes map[string]int) (kubeconfig string) {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for namespace, code := range codes {
			if strings.Contains(r.URL.Path, "/namespaces/"+namespace+"/") {
				w.WriteHeader(code)
				return
			}
		}
		switch {
		case r.URL.Query().Get("sendInitialEvents") != "":
			http.Error(w, "lists alone", http.StatusBadRequest)
		case r.URL.Query().Get("watch") != "":
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush() //nolint:forcetypeassert // net/http's
			select {
			case <-r.Context().Done():
			case <-t.Context().Done():
			}
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`))
		}
	}))
	t.Cleanup(api.Close)
	return fixture.Kubeconfig(t, api.URL)
}

// newChosenManager returns a manager with the options, which reads policies.
func newChosenManager(t *testing.T, o *Options) ctrl.Manager {
	t.Helper()
	m, err := o.NewManager(t.Context(), types.NamespacedName{Namespace: "autoscaling", Name: "adapter"}, ctrl.Options{
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(cluster.GVK(cluster.KindPolicy), meta.RESTScopeNamespace)
			return mapper, nil
		},
	}, nil)
	require.NoError(t, err)
	_, err = m.GetCache().GetInformer(t.Context(), cluster.NewObject(cluster.KindPolicy), cache.BlockUntilSynced(false))
	require.NoError(t, err)
	return m
}

// TestNamespacesThatRefuseAreLeftOut: no namespaces would mean all, and other errors may end.
func TestNamespacesThatRefuseAreLeftOut(t *testing.T) {
	const refused, failed = http.StatusForbidden, http.StatusInternalServerError
	for name, c := range map[string]struct {
		codes         map[string]int
		chosen, reads []string
	}{
		"one":                 {map[string]int{"shop": refused}, []string{"media", "shop"}, []string{"media"}},
		"none":                {nil, []string{"media", "shop"}, []string{"media", "shop"}},
		"all stay":            {map[string]int{"shop": refused}, []string{"shop"}, []string{"shop"}},
		"all namespaces":      {nil, nil, nil},
		"another error stays": {map[string]int{"shop": failed}, []string{"media", "shop"}, []string{"media", "shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Options{Kubeconfig: newNamespaces(t, c.codes), WatchNamespaces: c.chosen}
			newChosenManager(t, o)
			require.Equal(t, c.reads, o.WatchNamespaces)
		})
	}
}

// TestANamespaceThatMayBeReadAgainStartsTheProgramAgain: a cache takes no more namespaces.
func TestANamespaceThatMayBeReadAgainStartsTheProgramAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var readable atomic.Bool
		left := leftOut{namespaces: []string{"shop"}, probe: func(context.Context, string) error {
			if readable.Load() {
				return nil
			}
			return errors.New("forbidden")
		}}
		ended := make(chan error, 1)
		go func() { ended <- left.Start(t.Context()) }()
		time.Sleep(time.Hour)
		require.Empty(t, ended)
		readable.Store(true)
		time.Sleep(2 * probeInterval)
		require.ErrorContains(t, <-ended, "namespace shop may be read now")
	})
}

// TestANamespaceThatIsDeletedDoesNotStopTheOthers: its RoleBinding is deleted with it.
func TestANamespaceThatIsDeletedDoesNotStopTheOthers(t *testing.T) {
	o := &Options{
		Kubeconfig:      newNamespaces(t, map[string]int{"shop": http.StatusForbidden}),
		WatchNamespaces: []string{"media", "shop"},
	}
	m := newChosenManager(t, o)
	end := start(t, m)
	synced, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.True(t, m.GetCache().WaitForCacheSync(synced), "namespace shop stops namespace media")
	require.NoError(t, end())
}
