// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	cma "sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Policies reads policies from the cache.
type Policies interface {
	// Policy returns the policy, or an API server's NotFound. It is not changed by the caller.
	Policy(key types.NamespacedName) (*v1alpha1.AutoscalingPolicy, error)
}

// Object names what a signal is about.
type Object struct {
	GroupResource   schema.GroupResource
	Namespace, Name string
}

// Signals reads what was measured, from the cache.
type Signals interface {
	// Read returns what is known of the object's subscription, and has the details measured from now on. Asking for an
	// object that is not tracked starts to track it for a few minutes and fails with backlog.ErrNoData until the first
	// answer is in. An object that does not exist is ErrObjectNotFound or an API server's NotFound; any other error says
	// why the signal is unknown, in words for the user.
	Read(object Object, detail backlog.Detail, now time.Time) (backlog.Reading, error)
}

// DecisionMaker is the process that decides for all policies.
type DecisionMaker interface {
	// Alive fails when no replica decides now; the error says since when, in words for the user.
	Alive(now time.Time) error
}

// Lister finds objects in the cache.
type Lister interface {
	// Names returns the names of the objects in the namespace with labels that match.
	Names(resource schema.GroupResource, namespace string, selector labels.Selector) ([]string, error)
}

// Config is what New needs; all fields but Lister are required.
type Config struct {
	Policies      Policies
	Signals       Signals
	DecisionMaker DecisionMaker
	// Lister answers requests for several objects by their labels; without it they are refused.
	Lister Lister
	// Now is the time, such as time.Now.
	Now func() time.Time
	// Registerer takes the metrics about answering.
	Registerer prometheus.Registerer
}

// CustomMetrics answers requests for custom metrics. It is safe for concurrent use.
type CustomMetrics struct {
	config   Config
	observed *requestMetrics
	metrics  map[string]metric
	kinds    map[schema.GroupResource]described
	// answers are the goroutines that work on an answer.
	answers *errgroup.Group
}

// New checks the configuration and registers the metrics.
func New(config Config) (*CustomMetrics, error) {
	if config.Policies == nil || config.Signals == nil || config.DecisionMaker == nil || config.Now == nil ||
		config.Registerer == nil {
		return nil, errors.New("provider: Policies, Signals, DecisionMaker, Now and Registerer must be set")
	}
	observed, err := newRequestMetrics(config.Registerer)
	if err != nil {
		return nil, fmt.Errorf("provider: %w", err)
	}
	c := &CustomMetrics{
		config: config, observed: observed,
		metrics: map[string]metric{}, kinds: map[schema.GroupResource]described{},
		answers: &errgroup.Group{},
	}
	c.answers.SetLimit(maxAnswers)
	for _, m := range servedMetrics() {
		c.metrics[m.name] = m
	}
	for _, kind := range describedKinds() {
		c.kinds[kind.resource] = kind
	}
	return c, nil
}

// GetMetricByName returns one metric of one object, or a *StatusError of the table in errors.go.
func (c *CustomMetrics) GetMetricByName(ctx context.Context, name types.NamespacedName, info cma.CustomMetricInfo,
	metricSelector labels.Selector,
) (*custom_metrics.MetricValue, error) {
	return respond(ctx, c, func() (*custom_metrics.MetricValue, error) {
		q, err := c.query(name.Namespace, info, metricSelector)
		if err != nil {
			return nil, err
		}
		return c.value(q, name.Name, c.config.Now())
	})
}

// GetMetricBySelector returns one metric of every object with labels that match. One with an unknown number is left
// out, as absent means unknown; when no number is known at all, it fails with the first reason.
func (c *CustomMetrics) GetMetricBySelector(ctx context.Context, namespace string, selector labels.Selector,
	info cma.CustomMetricInfo, metricSelector labels.Selector,
) (*custom_metrics.MetricValueList, error) {
	return respond(ctx, c, func() (*custom_metrics.MetricValueList, error) {
		q, err := c.query(namespace, info, metricSelector)
		if err != nil {
			return nil, err
		}
		return c.values(q, selector, c.config.Now())
	})
}

// ListAllMetrics returns every metric of every kind of object, whether there are such objects or not.
func (c *CustomMetrics) ListAllMetrics() []cma.CustomMetricInfo {
	var all []cma.CustomMetricInfo
	for _, kind := range describedKinds() {
		for _, m := range servedMetrics() {
			if kind.serves(m) {
				all = append(all, cma.CustomMetricInfo{GroupResource: kind.resource, Namespaced: true, Metric: m.name})
			}
		}
	}
	return all
}

// respond works on an answer in time, counts it, and maps its error.
func respond[T any](ctx context.Context, c *CustomMetrics, work func() (*T, error)) (*T, error) {
	start := time.Now()
	value, err := inTime(ctx, c, work)
	c.observed.observe(time.Since(start), err)
	if err != nil {
		return nil, statusError(err)
	}
	return value, nil
}

// query is a request that makes sense.
type query struct {
	kind      described
	metric    metric
	namespace string
	selector  *metav1.LabelSelector
}

// query checks what is asked for, without looking at the object.
func (c *CustomMetrics) query(namespace string, info cma.CustomMetricInfo, selector labels.Selector) (query, error) {
	kind, ok := c.kinds[info.GroupResource]
	if !ok {
		return query{},
			newFault(errNotServed, "no metrics are served for %s, only for %s", info.GroupResource, describedResources())
	}
	m, ok := c.metrics[info.Metric]
	if !ok || !kind.serves(m) {
		return query{}, newFault(errNotServed, "no metric %q is served for %s", info.Metric, kind.resource)
	}
	if namespace == "" {
		return query{}, newFault(errBadRequest, "%s live in a namespace: name it", kind.resource)
	}
	q := query{kind: kind, metric: m, namespace: namespace}
	if selector == nil || selector.Empty() {
		return q, nil
	}
	if !selector.Matches(labels.Set{}) {
		return query{}, newFault(errNotServed, "metric %s has no labels, so the selector %q matches nothing: remove it",
			m.name, selector)
	}
	var err error
	if q.selector, err = metav1.ParseToLabelSelector(selector.String()); err != nil {
		return query{}, newFault(errBadRequest, "parsing selector %q: %s", selector, err)
	}
	return q, nil
}

// values answers for every object with labels that match.
func (c *CustomMetrics) values(q query, selector labels.Selector, now time.Time) (*custom_metrics.MetricValueList,
	error,
) {
	if c.config.Lister == nil {
		return nil, newFault(errBadRequest, "%s are served one by one: name one instead of *", q.kind.resource)
	}
	names, err := c.config.Lister.Names(q.kind.resource, q.namespace, selector)
	if err != nil {
		return nil, newFault(errUnknown, "%s", err)
	}
	list := &custom_metrics.MetricValueList{Items: []custom_metrics.MetricValue{}}
	var first error
	for _, name := range names {
		value, err := c.value(q, name, now)
		if err == nil {
			list.Items = append(list.Items, *value)
		} else if first == nil {
			first = err
		}
	}
	if len(list.Items) == 0 && first != nil {
		return nil, first
	}
	return list, nil
}

// value answers for one object.
func (c *CustomMetrics) value(q query, name string, now time.Time) (*custom_metrics.MetricValue, error) {
	value := &custom_metrics.MetricValue{
		DescribedObject: custom_metrics.ObjectReference{
			APIVersion: q.kind.apiVersion, Kind: q.kind.kind, Namespace: q.namespace, Name: name,
		},
		Metric: custom_metrics.MetricIdentifier{Name: q.metric.name, Selector: q.selector},
	}
	if q.metric.measure == nil {
		return value, c.putDecision(value, q, name, now)
	}
	return value, c.putSignal(value, q, name, now)
}

// putDecision fills in the replicas that were decided for a policy.
func (c *CustomMetrics) putDecision(value *custom_metrics.MetricValue, q query, name string, now time.Time) error {
	p, err := c.config.Policies.Policy(types.NamespacedName{Namespace: q.namespace, Name: name})
	if err != nil {
		return unknownFor(q.kind, q.namespace, name, err)
	}
	if err := c.config.DecisionMaker.Alive(now); err != nil {
		return newFault(errUnknown, "%s", err)
	}
	served, err := plan.Decided(p)
	if err != nil {
		return undecided(err)
	}
	value.Timestamp = metav1.NewTime(served.MeasuredAt)
	value.Value, err = quantity(float64(served.Replicas), q.metric.unit)
	return err
}

// putSignal fills in what was measured.
func (c *CustomMetrics) putSignal(value *custom_metrics.MetricValue, q query, name string, now time.Time) error {
	object := Object{GroupResource: q.kind.resource, Namespace: q.namespace, Name: name}
	reading, err := c.config.Signals.Read(object, q.metric.detail, now)
	if err != nil {
		return unknownFor(q.kind, q.namespace, name, err)
	}
	number, err := q.metric.measure(reading).Value()
	if err != nil {
		return newFault(errUnknown, "%s", err)
	}
	at, window := q.metric.when(reading)
	value.Timestamp = metav1.NewTime(at)
	if window > 0 || q.metric.unit == perSecond {
		seconds := max(1, int64(math.Round(window.Seconds())))
		value.WindowSeconds = &seconds
	}
	value.Value, err = quantity(number, q.metric.unit)
	return err
}
