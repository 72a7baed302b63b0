// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/metrics/pkg/apis/external_metrics"
	metricsclient "k8s.io/metrics/pkg/client/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver/installer"
	cma "sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
	storage "sigs.k8s.io/custom-metrics-apiserver/pkg/registry/external_metrics"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
)

func selecting(t *testing.T, text string) labels.Selector {
	t.Helper()
	selector, err := labels.Parse(text)
	require.NoError(t, err)
	return selector
}

func TestExternalMetricsAreTheSameNumbers(t *testing.T) {
	tests := map[string]struct {
		selector, metric string
		milli            int64
		window           *int64
		labels           map[string]string
	}{
		"a decision": {
			"policy=orders", served.MetricDesiredReplicas, 7000, nil,
			map[string]string{"policy": "orders"},
		},
		"the backlog of a policy": {
			"policy=orders", "pulsar_function_backlog_ready_messages", 100_000, nil,
			map[string]string{"policy": "orders"},
		},
		"the backlog of a Function": {
			"kind=Function,name=orders", "pulsar_function_backlog_messages", 120_000, nil,
			map[string]string{"kind": "Function", "name": "orders"},
		},
		"a rate, with its window": {
			"name=orders,kind=Sink", "pulsar_function_publish_rate", 12_346, new(int64(10)),
			map[string]string{"kind": "Sink", "name": "orders"},
		},
		"the backlog of a StatefulSet": {
			"kind=StatefulSet,name=orders", "pulsar_function_backlog_messages", 120_000, nil,
			map[string]string{"kind": "StatefulSet", "name": "orders"},
		},
		"a set of one": {
			"policy in (orders)", "pulsar_function_consumers", 3_000, nil,
			map[string]string{"policy": "orders"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newTestProvider(Config{})
			list, err := c.GetExternalMetric(t.Context(), "shop", selecting(t, tt.selector),
				cma.ExternalMetricInfo{Metric: tt.metric})
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
			value := list.Items[0]
			require.Equal(t, tt.metric, value.MetricName)
			require.Equal(t, tt.labels, value.MetricLabels)
			require.Equal(t, tt.milli, value.Value.MilliValue())
			require.Equal(t, tt.window, value.WindowSeconds)
			require.Equal(t, measuredAt(), value.Timestamp.Time)
		})
	}
}

func TestExternalMetricsReportProblems(t *testing.T) {
	const backlogMetric = "pulsar_function_backlog_ready_messages"
	unclear := func(selector string) string {
		return `selector "` + selector +
			`" does not name one object: use matchLabels policy: <name>, or kind: Function and name: <name>`
	}
	tests := map[string]struct {
		selector, metric string
		signals          Signals
		code             int32
		text             string
	}{
		"no selector":           {"", backlogMetric, nil, 400, unclear("")},
		"a name without a kind": {"name=orders", backlogMetric, nil, 400, unclear("name=orders")},
		"a label that is unknown": {
			"policy=orders,topic=in", backlogMetric, nil, 400,
			unclear("policy=orders,topic=in"),
		},
		"a policy and a Function": {
			"kind=Function,name=orders,policy=orders", backlogMetric, nil, 400,
			unclear("kind=Function,name=orders,policy=orders"),
		},
		"several policies": {
			"policy in (orders,returns)", backlogMetric, nil, 400,
			unclear("policy in (orders,returns)"),
		},
		"all but one":             {"policy!=orders", backlogMetric, nil, 400, unclear("policy!=orders")},
		"a policy without a name": {"policy=", backlogMetric, nil, 400, unclear("policy=")},
		"an unknown kind": {
			"kind=Deployment,name=orders", backlogMetric, nil, 400,
			`kind "Deployment" has no metrics: select one of Function, Sink, Source, StatefulSet, or policy=<name>`,
		},
		"an unknown metric": {
			"policy=orders", "queue_length", nil, 404,
			`no metric "queue_length" is served for autoscalingpolicies.pulsar-autoscaler.io`,
		},
		"an unknown value": {
			"policy=orders", backlogMetric,
			fakeSignals(func(schema.GroupResource, string) (backlog.Reading, error) {
				return backlog.Reading{},
					backlog.ErrStale
			}), 503, backlog.ErrStale.Error(),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newTestProvider(Config{Signals: tt.signals})
			_, err := c.GetExternalMetric(t.Context(), "shop", selecting(t, tt.selector),
				cma.ExternalMetricInfo{Metric: tt.metric})
			requireStatus(t, err, tt.code, tt.text)
		})
	}
}

func TestTheListOfExternalMetricsIsConstantAndInLowerCase(t *testing.T) {
	listed := newTestProvider(Config{Policies: fakePolicies{}}).ListAllExternalMetrics()
	require.Len(t, listed, len(servedMetrics()))
	for _, m := range listed {
		require.Equal(t, strings.ToLower(m.Metric), m.Metric, "a HorizontalPodAutoscaler asks in lower case")
	}
}

func TestTheAutoscalersClientReadsExternalMetrics(t *testing.T) {
	metrics := newTestProvider(Config{})
	server := httptest.NewServer(metricsAPI(t, external_metrics.GroupName, installer.MetricsAPIGroupVersion{
		DynamicStorage: storage.NewREST(metrics), ResourceLister: cma.NewExternalMetricResourceLister(metrics),
		Handlers: &installer.EMHandlers{},
	}))
	t.Cleanup(server.Close)
	client, err := metricsclient.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	list, err := client.NamespacedMetrics("shop").List("pulsar_function_backlog_ready_messages",
		selecting(t, "kind=Function,name=orders"))
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, int64(100_000), list.Items[0].Value.MilliValue())
	require.True(t, measuredAt().Equal(list.Items[0].Timestamp.Time))

	_, err = client.NamespacedMetrics("shop").List("pulsar_function_backlog_ready_messages", selecting(t, "topic=in"))
	require.ErrorContains(t, err, `selector "topic=in" does not name one object`)
}
