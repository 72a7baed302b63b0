// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestSignals(t *testing.T) {
	tests := map[string]struct {
		want   string
		window int64
		// earlier is the time from the measurement to the reading.
		earlier time.Duration
	}{
		"pulsar_function_backlog_messages":              {want: "120"},
		"pulsar_function_backlog_ready_messages":        {want: "100"},
		"pulsar_function_backlog_undispatched_messages": {want: "70"},
		"pulsar_function_delayed_messages":              {want: "20"},
		"pulsar_function_unacked_messages":              {want: "30"},
		"pulsar_function_publish_rate":                  {want: "12346m", window: 10},
		"pulsar_function_process_rate":                  {want: "10500m", window: 10},
		"pulsar_function_consumers":                     {want: "3"},
		"pulsar_function_backlog_bytes":                 {want: "123456"},
		"pulsar_function_in_replay_messages":            {want: "40"},
		"pulsar_function_delivery_rate":                 {want: "11250m", window: 10},
		"pulsar_function_unread_partitions":             {want: "2"},
		"pulsar_function_unread_messages":               {want: "17"},
		"pulsar_function_blocked":                       {want: "0"},
		"pulsar_function_throttled":                     {want: "1"},
		"pulsar_function_draining":                      {want: "0"},

		"pulsar_function_oldest_unacked_message_age_seconds": {want: "90250m", earlier: time.Minute},

		"pulsar_function_busy_ratio":           {want: "877m", window: 15, earlier: time.Second},
		"pulsar_function_service_time_seconds": {want: "12m", window: 15, earlier: time.Second},
		"pulsar_function_exception_rate":       {want: "750m", window: 15, earlier: time.Second},
		"pulsar_function_in_flight_messages":   {want: "5", earlier: time.Second},
		"pulsar_function_silent_instances":     {want: "1", earlier: time.Second},
	}
	require.Len(t, tests, len(servedMetrics())-1, "all but the decision")
	for metric, tt := range tests {
		for _, resource := range []schema.GroupResource{v1alpha1.GroupResource(), functions(), sinks()} {
			t.Run(metric+" of "+resource.String(), func(t *testing.T) {
				value, err := newTestProvider(Config{}).GetMetricByName(t.Context(), orders(), info(resource, metric), nil)
				require.NoError(t, err)
				require.Equal(t, tt.want, value.Value.String())
				require.Equal(t, metric, value.Metric.Name)
				require.Equal(t, measuredAt().Add(-tt.earlier), value.Timestamp.Time)
				if tt.window == 0 {
					require.Nil(t, value.WindowSeconds)
				} else {
					require.Equal(t, tt.window, *value.WindowSeconds)
				}
			})
		}
	}
}

func TestDispatchThatIsBlockedOnOneTopicIsKnown(t *testing.T) {
	partial := fixture.Partial(reading(), backlog.ErrForbidden)
	partial.Blocked = true
	signals := fakeSignals(func(schema.GroupResource, string) (backlog.Reading, error) { return partial, nil })
	value, err := newTestProvider(Config{Signals: signals}).GetMetricByName(t.Context(), orders(),
		info(functions(), "pulsar_function_blocked"), nil)
	require.NoError(t, err)
	require.Equal(t, "1", value.Value.String())
}

func TestRefusals(t *testing.T) {
	const (
		ready   = "pulsar_function_backlog_ready_messages"
		missing = "partial answer: 99 of 100 topics are known; missing: persistent://public/default/in-7 (permission missing)"
	)
	reads := func(r backlog.Reading, err error) Signals {
		return fakeSignals(func(schema.GroupResource, string) (backlog.Reading, error) { return r, err })
	}
	tests := map[string]struct {
		signals  Signals
		name     types.NamespacedName
		resource schema.GroupResource
		metric   string
		selector string
		code     int32
		text     string
	}{
		"an object that does not exist": {
			name: types.NamespacedName{Namespace: "shop", Name: "gone"}, metric: ready, code: 404,
			text: `functions.compute.functionmesh.io "gone" in namespace "shop" not found`,
		},
		"a policy that does not exist": {
			name:     types.NamespacedName{Namespace: "shop", Name: "gone"},
			resource: v1alpha1.GroupResource(), metric: served.MetricDesiredReplicas, code: 404,
			text: `autoscalingpolicies.pulsar-autoscaler.io "gone" in namespace "shop" not found`,
		},
		"a metric that is not in the list": {
			metric: "pulsar_function_luck", code: 404,
			text: `no metric "pulsar_function_luck" is served for functions.compute.functionmesh.io`,
		},
		"the decision of a Function, which has none": {
			metric: served.MetricDesiredReplicas, code: 404,
			text: `no metric "pulsar_function_desired_replicas" is served for functions.compute.functionmesh.io`,
		},
		"an object of another kind": {
			resource: schema.GroupResource{Resource: "pods"}, metric: ready, code: 404,
			text: "no metrics are served for pods, only for autoscalingpolicies.pulsar-autoscaler.io, " +
				"functions.compute.functionmesh.io, sinks.compute.functionmesh.io, sources.compute.functionmesh.io, " +
				"statefulsets.apps",
		},
		"no namespace": {
			name: types.NamespacedName{Name: "orders"}, metric: ready, code: 400,
			text: "functions.compute.functionmesh.io live in a namespace: name it",
		},
		"a selector that nothing matches": {
			metric: ready, selector: "topic=orders", code: 404,
			text: `metric pulsar_function_backlog_ready_messages has no labels, so the selector "topic=orders" matches nothing: remove it`,
		},
		"a signal without data yet": {
			signals: reads(backlog.Reading{},
				fmt.Errorf("%w: first answer about t is under way", backlog.ErrNoData)), metric: ready, code: 503,
			text: "no data yet: first answer about t is under way",
		},
		"a topic that does not exist": {
			signals: reads(backlog.Reading{}, fmt.Errorf("%w: create it", backlog.ErrTopicNotFound)), metric: ready, code: 503,
			text: "topic not found: create it",
		},
		"a number that is unknown in a good reading": {
			signals: reads(backlog.Reading{At: measuredAt(), PublishRate: backlog.Unknown(backlog.ErrNoRate)}, nil),
			metric:  "pulsar_function_publish_rate", code: 503,
			text: "no rate yet: it needs two answers with no counter reset between",
		},
		"whether dispatch is blocked on an unknown topic": {
			signals: reads(fixture.Partial(reading(), backlog.ErrForbidden), nil), metric: "pulsar_function_blocked",
			code: 503, text: missing,
		},
		"whether keys wait on an unknown topic": {
			signals: reads(fixture.Partial(reading(), backlog.ErrForbidden), nil), metric: "pulsar_function_draining",
			code: 503, text: missing,
		},
		"whether dispatch is throttled after one answer": {
			signals: reads(backlog.Reading{At: measuredAt(), DeliveryRate: backlog.Unknown(backlog.ErrNoRate)}, nil),
			metric:  "pulsar_function_throttled", code: 503,
			text: "no rate yet: it needs two answers with no counter reset between",
		},
		"a field that was forgotten": {
			signals: reads(backlog.Reading{At: measuredAt()}, nil), metric: ready, code: 503, text: "no data yet",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.name.Name == "" {
				tt.name = orders()
			}
			if tt.resource.Empty() {
				tt.resource = functions()
			}
			selector, err := labels.Parse(tt.selector)
			require.NoError(t, err)
			value, err := newTestProvider(Config{Signals: tt.signals}).GetMetricByName(t.Context(), tt.name,
				info(tt.resource, tt.metric), selector)
			require.Nil(t, value)
			requireStatus(t, err, tt.code, tt.text)
		})
	}
}

func TestBySelector(t *testing.T) {
	const metric = "pulsar_function_consumers"
	tests := map[string]struct {
		lister Lister
		want   []string
		code   int32
		text   string
	}{
		"serves every object": {
			lister: fakeLister{"orders", "orders"},
			want:   []string{"orders", "orders"},
		},
		"omits unknown values":                 {lister: fakeLister{"gone", "orders"}, want: []string{"orders"}},
		"serves an empty list without objects": {lister: fakeLister{}, want: []string{}},
		"fails with the reason when nothing is known": {
			lister: fakeLister{"gone"}, code: 404,
			text: `functions.compute.functionmesh.io "gone" in namespace "shop" not found`,
		},
		"fails with the lister's words when that fails": {
			lister: brokenLister{}, code: 503,
			text: "caches are not filled yet",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newTestProvider(Config{Lister: tt.lister})
			list, err := c.GetMetricBySelector(t.Context(), "shop", labels.Everything(), info(functions(), metric), nil)
			if tt.code != 0 {
				requireStatus(t, err, tt.code, tt.text)
				return
			}
			require.NoError(t, err)
			names := []string{}
			for _, item := range list.Items {
				names = append(names, item.DescribedObject.Name)
			}
			require.Equal(t, tt.want, names)
		})
	}
}

type brokenLister struct{}

func (brokenLister) Names(schema.GroupResource, string, labels.Selector) ([]string, error) {
	return nil, errors.New("caches are not filled yet")
}

func TestTheListOfMetricsIsConstantAndItsNamesFitAURL(t *testing.T) {
	all := newTestProvider(Config{}).ListAllMetrics()
	require.Len(t, all, 5*len(servedMetrics())-4, "the decision is the policy's alone")
	seen := map[string]bool{}
	for _, one := range all {
		require.Regexp(t, `^pulsar_function_[a-z_]+$`, one.Metric)
		require.True(t, one.Namespaced)
		require.False(t, seen[one.String()], "%s is there twice", one)
		seen[one.String()] = true
	}
}

func TestRequestsAreCountedByResult(t *testing.T) {
	registry := prometheus.NewRegistry()
	c := newTestProvider(Config{Registerer: registry})
	for _, metric := range []string{"pulsar_function_consumers", "pulsar_function_consumers", "pulsar_function_luck"} {
		_, _ = c.GetMetricByName(t.Context(), orders(), info(functions(), metric), nil)
	}
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP pulsar_autoscaler_provider_requests_total Requests for custom and external metrics, by result.
# TYPE pulsar_autoscaler_provider_requests_total counter
pulsar_autoscaler_provider_requests_total{result="bad_request"} 0
pulsar_autoscaler_provider_requests_total{result="busy"} 0
pulsar_autoscaler_provider_requests_total{result="canceled"} 0
pulsar_autoscaler_provider_requests_total{result="error"} 0
pulsar_autoscaler_provider_requests_total{result="not_found"} 1
pulsar_autoscaler_provider_requests_total{result="ok"} 2
pulsar_autoscaler_provider_requests_total{result="too_slow"} 0
pulsar_autoscaler_provider_requests_total{result="unknown"} 0
pulsar_autoscaler_provider_requests_total{result="unsupported"} 0
`), "pulsar_autoscaler_provider_requests_total"))
	count, err := testutil.GatherAndCount(registry, "pulsar_autoscaler_provider_request_duration_seconds")
	require.NoError(t, err)
	require.Equal(t, 1, count)
}

func BenchmarkGetMetricByName(b *testing.B) {
	c := newTestProvider(Config{})
	for _, metric := range []string{served.MetricDesiredReplicas, "pulsar_function_publish_rate"} {
		b.Run(metric, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := c.GetMetricByName(b.Context(), orders(), info(v1alpha1.GroupResource(), metric), nil)
				require.NoError(b, err)
			}
		})
	}
}
