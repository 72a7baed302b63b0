// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/metrics/pkg/apis/external_metrics"
	cma "sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

// Labels of the selector of an external metric. Topics and subscriptions are not possible: a label value has no slash.
const (
	labelPolicy = "policy"
	labelKind   = "kind"
	labelName   = "name"
)

// ExternalMetrics serves external metrics: the same numbers, under the same rules. It is safe for concurrent use.
type ExternalMetrics struct{ custom *CustomMetrics }

// External serves the same metrics as external metrics.
func (c *CustomMetrics) External() *ExternalMetrics { return &ExternalMetrics{custom: c} }

// GetExternalMetric returns one metric of one object of the namespace, or a *StatusError. The selector is
// policy=<name>, or kind=Function,name=<name>, where kind is Function, Sink, Source or StatefulSet. There is one value
// at most: a HorizontalPodAutoscaler would use the sum.
func (e *ExternalMetrics) GetExternalMetric(ctx context.Context, namespace string, metricSelector labels.Selector,
	info cma.ExternalMetricInfo,
) (*external_metrics.ExternalMetricValueList, error) {
	return respond(ctx, e.custom, func(context.Context) (*external_metrics.ExternalMetricValueList, error) {
		kind, name, err := selected(metricSelector)
		if err != nil {
			return nil, err
		}
		q, err := e.custom.query(namespace,
			cma.CustomMetricInfo{GroupResource: kind.resource, Namespaced: true, Metric: info.Metric}, nil)
		if err != nil {
			return nil, err
		}
		value, err := e.custom.value(q, name, e.custom.config.Now())
		if err != nil {
			return nil, err
		}
		return &external_metrics.ExternalMetricValueList{Items: []external_metrics.ExternalMetricValue{{
			MetricName: q.metric.name, MetricLabels: labelsOf(kind, name),
			Timestamp: value.Timestamp, WindowSeconds: value.WindowSeconds, Value: value.Value,
		}}}, nil
	})
}

// ListAllExternalMetrics returns every metric, whether or not such objects exist.
func (e *ExternalMetrics) ListAllExternalMetrics() []cma.ExternalMetricInfo {
	var all []cma.ExternalMetricInfo
	for _, m := range servedMetrics() {
		all = append(all, cma.ExternalMetricInfo{Metric: m.name})
	}
	return all
}

func selected(selector labels.Selector) (kind described, name string, err error) {
	wanted, exact := equalities(selector)
	keys := slices.Sorted(maps.Keys(wanted))
	switch {
	case !exact:
	case slices.Equal(keys, []string{labelPolicy}) && wanted[labelPolicy] != "":
		for _, kind := range describedKinds() {
			if kind.isPolicy {
				return kind, wanted[labelPolicy], nil
			}
		}
	case slices.Equal(keys, []string{labelKind, labelName}) && wanted[labelName] != "":
		var kinds []string
		for _, kind := range describedKinds() {
			if kind.isPolicy {
				continue
			}
			if kind.kind == wanted[labelKind] {
				return kind, wanted[labelName], nil
			}
			kinds = append(kinds, kind.kind)
		}
		return described{}, "", response.Errorf(response.Invalid,
			"kind %q has no metrics: select one of %s, or policy=<name>", wanted[labelKind], strings.Join(kinds, ", "))
	}
	text := ""
	if selector != nil {
		text = selector.String()
	}
	return described{}, "", response.Errorf(response.Invalid,
		"selector %q does not name one object: use matchLabels policy: <name>, or kind: Function and name: <name>", text)
}

// equalities returns the labels that the selector matches; not exact if it matches more than one value of any.
func equalities(selector labels.Selector) (wanted map[string]string, exact bool) {
	wanted = map[string]string{}
	if selector == nil {
		return wanted, false
	}
	requirements, selectable := selector.Requirements()
	for _, r := range requirements {
		values := r.Values().UnsortedList()
		_, twice := wanted[r.Key()]
		isEquality := r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals ||
			r.Operator() == selection.In
		if !isEquality || len(values) != 1 || twice {
			return wanted, false
		}
		wanted[r.Key()] = values[0]
	}
	return wanted, selectable
}

// labelsOf returns the labels of the value, which select it.
func labelsOf(kind described, name string) map[string]string {
	if kind.isPolicy {
		return map[string]string{labelPolicy: name}
	}
	return map[string]string{labelKind: kind.kind, labelName: name}
}
