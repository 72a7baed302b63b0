// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/emicklei/go-restful/v3"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapi "k8s.io/apiserver/pkg/endpoints"
	genericfilters "k8s.io/apiserver/pkg/endpoints/filters"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	metricsgroup "k8s.io/metrics/pkg/apis/custom_metrics"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta1"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	metricsclient "k8s.io/metrics/pkg/client/custom_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver/installer"
	cma "sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
	storage "sigs.k8s.io/custom-metrics-apiserver/pkg/registry/custom_metrics"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
)

// metricsAPI serves a group of metrics through the handlers of the library, as it installs them (pkg/apiserver,
// cmapis.go and emapis.go).
func metricsAPI(t *testing.T, groupName string, api installer.MetricsAPIGroupVersion) http.Handler {
	t.Helper()
	group := genericapiserver.NewDefaultAPIGroupInfo(groupName, apiserver.Scheme,
		runtime.NewParameterCodec(apiserver.Scheme), apiserver.Codecs)
	container := restful.NewContainer()
	container.Router(restful.CurlyRouter{})
	for _, version := range group.PrioritizedVersions {
		of := api
		of.APIGroupVersion = groupVersion(group, version)
		require.NoError(t, of.InstallREST(container))
	}
	resolver := genericapiserver.NewRequestInfoResolver(&genericapiserver.Config{})
	return genericfilters.WithRequestInfo(container, resolver)
}

// apiVersions are the versions that a HorizontalPodAutoscaler controller may choose from.
func apiVersions() map[string]schema.GroupVersion {
	return map[string]schema.GroupVersion{"v1beta1": v1beta1.SchemeGroupVersion, "v1beta2": v1beta2.SchemeGroupVersion}
}

// hpaClient is the client of the HorizontalPodAutoscaler controller. It counts requests, and checks that no response
// makes it wait.
func hpaClient(t *testing.T, config Config, version schema.GroupVersion) (metricsclient.MetricsInterface,
	*atomic.Int32,
) {
	t.Helper()
	metrics, requests := newTestProvider(config), &atomic.Int32{}
	handler := metricsAPI(t, metricsgroup.GroupName, installer.MetricsAPIGroupVersion{
		DynamicStorage: storage.NewREST(metrics), ResourceLister: cma.NewCustomMetricResourceLister(metrics),
		Handlers: &installer.CMHandlers{},
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		handler.ServeHTTP(w, r)
		if w.Header().Get("Retry-After") != "" {
			t.Error("the answer has Retry-After")
		}
	}))
	t.Cleanup(server.Close)
	mapped := []schema.GroupVersionKind{policyKind().WithVersion("v1alpha1"), functionKind().WithVersion("v1alpha1")}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{mapped[0].GroupVersion(), mapped[1].GroupVersion()})
	for _, kind := range mapped {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	client, err := metricsclient.NewForVersionForConfig(&rest.Config{Host: server.URL}, mapper, version)
	require.NoError(t, err)
	return client.NamespacedMetrics("shop"), requests
}

func policyKind() schema.GroupKind {
	return schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.KindAutoscalingPolicy}
}

func functionKind() schema.GroupKind {
	return schema.GroupKind{Group: "compute.functionmesh.io", Kind: "Function"}
}

func TestTheAutoscalersClientReadsMetrics(t *testing.T) {
	tests := map[string]struct {
		kind   schema.GroupKind
		metric string
		milli  int64
		window int64
	}{
		"a decision":           {policyKind(), served.MetricDesiredReplicas, 7000, 0},
		"backlog of a policy":  {policyKind(), "pulsar_function_backlog_ready_messages", 100000, 0},
		"a rate of a Function": {functionKind(), "pulsar_function_publish_rate", 12346, 10},
	}
	for version, gv := range apiVersions() {
		for name, tt := range tests {
			t.Run(name+" through "+version, func(t *testing.T) {
				client, _ := hpaClient(t, Config{}, gv)
				value, err := client.GetForObject(tt.kind, "orders", tt.metric, labels.Everything())
				require.NoError(t, err)
				require.Equal(t, tt.milli, value.Value.MilliValue())
				require.Equal(t, tt.metric, value.Metric.Name)
				require.Equal(t, tt.kind.Kind, value.DescribedObject.Kind)
				require.True(t, value.Timestamp.Time.Equal(measuredAt()))
				if tt.window != 0 {
					require.Equal(t, tt.window, *value.WindowSeconds)
				}
			})
		}
	}
}

func TestTheAutoscalersClientReadsSeveralObjects(t *testing.T) {
	for version, gv := range apiVersions() {
		t.Run(version, func(t *testing.T) {
			client, _ := hpaClient(t, Config{Lister: fakeLister{"orders", "gone"}}, gv)
			list, err := client.GetForObjects(functionKind(), labels.Everything(), "pulsar_function_consumers",
				labels.Everything())
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
		})
	}
}

func TestTheAutoscalersClientGetsReasonsAtOnce(t *testing.T) {
	stale := fakeSignals(func(schema.GroupResource, string) (backlog.Reading, error) {
		return backlog.Reading{}, backlog.ErrStale
	})
	tests := map[string]struct {
		metric string
		is     func(error) bool
		text   string
	}{
		"why a number is unknown": {
			"pulsar_function_consumers", apierrors.IsServiceUnavailable, "stale",
		},
		"that a metric is not served": {
			"pulsar_function_luck", apierrors.IsNotFound,
			`no metric "pulsar_function_luck" is served for autoscalingpolicies.pulsar-autoscaler.io`,
		},
	}
	for version, gv := range apiVersions() {
		for name, tt := range tests {
			t.Run(name+" through "+version, func(t *testing.T) {
				client, requests := hpaClient(t, Config{Signals: stale}, gv)
				_, err := client.GetForObject(policyKind(), "orders", tt.metric, labels.Everything())
				require.True(t, tt.is(err), "%v", err)
				require.EqualError(t, err, tt.text)
				require.EqualValues(t, 1, requests.Load(), "the client asked again")
			})
		}
	}
}

// groupVersion configures the API server for one version of a group of metrics.
func groupVersion(group genericapiserver.APIGroupInfo, version schema.GroupVersion) *genericapi.APIGroupVersion {
	return &genericapi.APIGroupVersion{
		Root: genericapiserver.APIGroupPrefix, GroupVersion: version, MetaGroupVersion: group.MetaGroupVersion,
		ParameterCodec: group.ParameterCodec, Serializer: group.NegotiatedSerializer, Creater: group.Scheme,
		Convertor: group.Scheme, UnsafeConvertor: runtime.UnsafeObjectConvertor(group.Scheme), Typer: group.Scheme,
		Namer: runtime.Namer(meta.NewAccessor()),
	}
}
