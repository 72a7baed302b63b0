// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
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

// GetExternalMetric returns one metric of one object of the namespace, or a *StatusError. The selector is
// policy=<name>, or kind=Function,name=<name>, where kind is Function, Sink, Source or StatefulSet. There is one value
// at most: a HorizontalPodAutoscaler would use the sum.
func (c *CustomMetrics) GetExternalMetric(ctx context.Context, namespace string, metricSelector labels.Selector,
	info cma.ExternalMetricInfo,
) (*external_metrics.ExternalMetricValueList, error) {
	return respond(ctx, c, func(context.Context) (*external_metrics.ExternalMetricValueList, error) {
		kind, name, err := selected(metricSelector)
		if err != nil {
			return nil, err
		}
		q, err := c.query(namespace,
			cma.CustomMetricInfo{GroupResource: kind.resource, Namespaced: true, Metric: info.Metric}, nil)
		if err != nil {
			return nil, err
		}
		value, err := c.value(q, name, c.config.Now())
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
func (c *CustomMetrics) ListAllExternalMetrics() []cma.ExternalMetricInfo {
	var all []cma.ExternalMetricInfo
	for _, m := range servedMetrics() {
		all = append(all, cma.ExternalMetricInfo{Metric: m.name})
	}
	return all
}

func selected(selector labels.Selector) (kind described, name string, err error) {
	if selector == nil {
		selector = labels.Nothing()
	}
	requirements, _ := selector.Requirements()
	policy, ofPolicy := selector.RequiresExactMatch(labelPolicy)
	wanted, ofKind := selector.RequiresExactMatch(labelKind)
	name, named := selector.RequiresExactMatch(labelName)
	switch {
	case ofPolicy && policy != "" && len(requirements) == 1:
		return describedKinds()[0], policy, nil
	case ofKind && named && name != "" && len(requirements) == 2:
		var kinds []string
		for _, kind := range describedKinds()[1:] {
			if kind.kind == wanted {
				return kind, name, nil
			}
			kinds = append(kinds, kind.kind)
		}
		return described{}, "", response.Errorf(response.Invalid,
			"kind %q has no metrics: select one of %s, or policy=<name>", wanted, strings.Join(kinds, ", "))
	}
	return described{}, "", response.Errorf(response.Invalid,
		"selector %q does not name one object: use matchLabels policy: <name>, or kind: Function and name: <name>", selector)
}

// labelsOf returns the labels of the value, which select it.
func labelsOf(kind described, name string) map[string]string {
	if kind.isPolicy() {
		return map[string]string{labelPolicy: name}
	}
	return map[string]string{labelKind: kind.kind, labelName: name}
}
