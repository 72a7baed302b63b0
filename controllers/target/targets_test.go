// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// configMaps is an API server with at most one ConfigMap. It counts the reads.
type configMaps struct {
	client client.Client
	reads  int
	fails  error
}

func newConfigMaps(t *testing.T, data map[string]string) *configMaps {
	t.Helper()
	c := &configMaps{}
	b := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, inner client.WithWatch, key client.ObjectKey, obj client.Object,
			opts ...client.GetOption,
		) error {
			c.reads++
			if c.fails != nil {
				return c.fails
			}
			return inner.Get(ctx, key, obj, opts...)
		},
	})
	if data != nil {
		b = b.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: "pulsar"}, Data: data})
	}
	c.client = b.Build()
	return c
}

func TestFindCluster(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "pulsar", fmt.Errorf("no"))
	tests := map[string]struct {
		policy, otherwise string
		configMap         string
		data              map[string]string
		fails             error
		cluster           string
		invalid           string
	}{
		"the policy takes precedence": {
			policy: "https://Mine:8443/", configMap: "pulsar", data: map[string]string{"webServiceURL": "http://its:8080"},
			otherwise: "http://default:8080", cluster: "https://mine:8443",
		},
		"the object's ConfigMap comes second": {
			configMap: "pulsar", data: map[string]string{"webServiceURL": " http://its:8080/\n"},
			otherwise: "http://default:8080", cluster: "http://its:8080",
		},
		"the default replaces a ConfigMap without a URL": {
			configMap: "pulsar", data: map[string]string{"brokerServiceURL": "pulsar://its:6650"},
			otherwise: "http://default:8080", cluster: "http://default:8080",
		},
		"the default applies without a ConfigMap": {otherwise: "http://default:8080", cluster: "http://default:8080"},
		"the default does not replace a missing ConfigMap": {
			configMap: "pulsar", otherwise: "http://default:8080",
			invalid: "ConfigMap pulsar, which spec.pulsar.pulsarConfig names, does not exist",
		},
		"the default does not replace a forbidden ConfigMap": {
			configMap: "pulsar", fails: forbidden, otherwise: "http://default:8080",
			invalid: "grant the adapter get on configmaps",
		},
		"several hosts are invalid": {
			configMap: "pulsar", data: map[string]string{"webServiceURL": "http://a:8080,b:8080"},
			invalid: "webServiceURL in ConfigMap pulsar",
		},
		"the message hides credentials": {
			configMap: "pulsar", data: map[string]string{"webServiceURL": "http://user:hunter2@a:8080"},
			invalid: "no credentials",
		},
		"no URL at all": {
			configMap: "pulsar", data: map[string]string{},
			invalid: "set spec.pulsar.adminURL of the policy, webServiceURL in ConfigMap pulsar, which " +
				"spec.pulsar.pulsarConfig names, or --pulsar-admin-url of the adapter (value pulsar.adminURL of the chart)",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			api := newConfigMaps(t, test.data)
			api.fails = test.fails
			c := newTestClusters(api.client, test.otherwise, func() time.Time { return time.Unix(0, 0) })
			key := types.NamespacedName{Namespace: "media", Name: test.configMap}
			cluster, err := c.find(t.Context(), &v1alpha1.PulsarConnection{AdminURL: test.policy}, key)
			require.Equal(t, backlog.Cluster{AdminURL: test.cluster}, cluster)
			if test.invalid == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorAs(t, err, new(*plan.Violation))
			require.ErrorContains(t, err, test.invalid)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestConfigMapIsReadOnceAMinute(t *testing.T) {
	api := newConfigMaps(t, map[string]string{"webServiceURL": "http://its:8080"})
	now := time.Unix(0, 0)
	c := newTestClusters(api.client, "", func() time.Time { return now })
	key := types.NamespacedName{Namespace: "media", Name: "pulsar"}
	for range 3 {
		cluster, err := c.find(t.Context(), nil, key)
		require.NoError(t, err)
		require.Equal(t, backlog.Cluster{AdminURL: "http://its:8080"}, cluster)
	}
	require.Equal(t, 1, api.reads)
	now = now.Add(lookupTTL)
	api.fails = apierrors.NewServiceUnavailable("etcd is away")
	_, err := c.find(t.Context(), nil, key)
	require.ErrorContains(t, err, "etcd is away", "what is transient is tried again and not kept")
	api.fails = nil
	_, err = c.find(t.Context(), nil, key)
	require.NoError(t, err)
	require.Equal(t, 3, api.reads)
}

func TestConfigMapOfAFailingClusterIsReadAgain(t *testing.T) {
	api := newConfigMaps(t, map[string]string{"webServiceURL": "http://its:8080"})
	now := time.Unix(0, 0)
	c := newTestClusters(api.client, "", func() time.Time { return now })
	key := types.NamespacedName{Namespace: "media", Name: "pulsar"}
	find := func() {
		_, err := c.find(t.Context(), nil, key)
		require.NoError(t, err)
	}
	find()
	c.invalidate(backlog.Cluster{AdminURL: "http://another:8080"})
	now = now.Add(lookupRetryAfter)
	find()
	require.Equal(t, 1, api.reads, "another cluster failed")
	c.invalidate(backlog.Cluster{AdminURL: "http://its:8080"})
	find()
	require.Equal(t, 2, api.reads)
	c.invalidate(backlog.Cluster{AdminURL: "http://its:8080"})
	now = now.Add(lookupRetryAfter - 1)
	find()
	require.Equal(t, 2, api.reads, "at most every ten seconds")
}

func TestConfigMapCacheIsBounded(t *testing.T) {
	api := newConfigMaps(t, nil)
	now := time.Unix(0, 0)
	c := newTestClusters(api.client, "", func() time.Time { return now })
	for i := range maxLookups + 10 {
		_, err := c.find(t.Context(), nil, types.NamespacedName{Namespace: "media", Name: fmt.Sprint(i)})
		require.ErrorAs(t, err, new(*plan.Violation))
		require.LessOrEqual(t, len(c.addresses.known), maxLookups)
	}
	require.Len(t, c.addresses.known, 10)
}

func TestInvalidDefaultAdminURLIsRefused(t *testing.T) {
	api := newConfigMaps(t, nil)
	_, err := New(Config{
		Workloads: api.client, Objects: api.client, FunctionCredentials: UseFunctionCredentials,
		Installed: func(string) bool { return true }, Now: time.Now, DefaultAdminURL: "pulsar://broker:6650",
	})
	require.ErrorContains(t, err, "DefaultAdminURL must be http://host:port")
}
