// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	cma "sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

// Signals reads measurements from the cache.
type Signals interface {
	// Read returns the reading of the object's subscription, and has the details measured from now on:
	// backlog.ErrNoData until the first response. A missing object is an API server's NotFound; any other error is why
	// the signal is unknown, as a text for the user.
	Read(resource schema.GroupResource, key types.NamespacedName, detail backlog.Detail, now time.Time) (backlog.Reading,
		error,
	)
}

// Lister finds objects in the cache.
type Lister interface {
	// Names returns the names of the objects in the namespace with matching labels.
	Names(resource schema.GroupResource, namespace string, selector labels.Selector) ([]string, error)
}

// Config configures New; all fields are required.
type Config struct {
	Policies      response.Policies
	Signals       Signals
	DecisionMaker response.DecisionMaker
	// Lister serves requests for several objects by their labels.
	Lister Lister
	// Now returns the time, such as time.Now.
	Now func() time.Time
	// Registerer registers the metrics about requests.
	Registerer prometheus.Registerer
}

// CustomMetrics serves custom and external metrics, the same numbers. It is safe for concurrent use.
type CustomMetrics struct {
	config   Config
	requests *prometheus.CounterVec // by result
	duration prometheus.Histogram
	metrics  map[string]metric
	kinds    map[schema.GroupResource]described
	limiter  *response.Limiter
}

// New registers the metrics.
func New(config Config) *CustomMetrics {
	factory := promauto.With(config.Registerer)
	c := &CustomMetrics{
		config: config, limiter: response.NewLimiter("adapter"),
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "pulsar_autoscaler_provider_requests_total",
			Help: "Requests for custom and external metrics, by result.",
		}, []string{"result"}),
		duration: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "pulsar_autoscaler_provider_request_duration_seconds",
			Help:    "Time from a request for a metric to its response.",
			Buckets: response.Buckets(),
		}),
		metrics: map[string]metric{}, kinds: map[schema.GroupResource]described{},
	}
	for _, reason := range response.Reasons() {
		c.requests.WithLabelValues(string(reason))
	}
	for _, m := range servedMetrics() {
		c.metrics[m.name] = m
	}
	for _, kind := range describedKinds() {
		c.kinds[kind.resource] = kind
	}
	return c
}

// GetMetricByName returns one metric of one object, or a *StatusError of statusError.
func (c *CustomMetrics) GetMetricByName(ctx context.Context, name types.NamespacedName, info cma.CustomMetricInfo,
	metricSelector labels.Selector,
) (*custom_metrics.MetricValue, error) {
	return respond(ctx, c, func(context.Context) (*custom_metrics.MetricValue, error) {
		q, err := c.query(name.Namespace, info, metricSelector)
		if err != nil {
			return nil, err
		}
		return c.value(q, name.Name, c.config.Now())
	})
}

// GetMetricBySelector returns one metric of every object with matching labels. It omits unknown numbers, and fails with
// the first reason if all are unknown.
func (c *CustomMetrics) GetMetricBySelector(ctx context.Context, namespace string, selector labels.Selector,
	info cma.CustomMetricInfo, metricSelector labels.Selector,
) (*custom_metrics.MetricValueList, error) {
	return respond(ctx, c, func(context.Context) (*custom_metrics.MetricValueList, error) {
		q, err := c.query(namespace, info, metricSelector)
		if err != nil {
			return nil, err
		}
		return c.values(q, selector, c.config.Now())
	})
}

// ListAllMetrics returns every metric of every kind of object, whether or not such objects exist.
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

// respond runs a request within the time limit, counts it, and maps its error.
func respond[T any](ctx context.Context, c *CustomMetrics, work func(context.Context) (*T, error)) (*T, error) {
	start := time.Now()
	value, err := response.Do(ctx, c.limiter, work)
	result := "ok"
	if err != nil {
		result = string(response.ReasonOf(err))
	}
	c.requests.WithLabelValues(result).Inc()
	c.duration.Observe(time.Since(start).Seconds())
	if err != nil {
		return nil, statusError(err)
	}
	return value, nil
}

type query struct {
	kind      described
	metric    metric
	namespace string
}

func (q query) describe(name string) string {
	return fmt.Sprintf("%s %q in namespace %q", q.kind.resource, name, q.namespace)
}

// query validates a request, without reading the object.
func (c *CustomMetrics) query(namespace string, info cma.CustomMetricInfo, selector labels.Selector) (query, error) {
	kind, ok := c.kinds[info.GroupResource]
	if !ok {
		return query{},
			response.Errorf(response.NotFound, "no metrics are served for %s, only for %s", info.GroupResource,
				describedResources())
	}
	m, ok := c.metrics[info.Metric]
	if !ok || !kind.serves(m) {
		return query{}, response.Errorf(response.NotFound, "no metric %q is served for %s", info.Metric, kind.resource)
	}
	if namespace == "" {
		return query{}, response.Errorf(response.Invalid, "%s live in a namespace: name it", kind.resource)
	}
	if selector != nil && !selector.Matches(labels.Set{}) {
		return query{}, response.Errorf(response.NotFound,
			"metric %s has no labels, so the selector %q matches nothing: remove it", m.name, selector)
	}
	return query{kind: kind, metric: m, namespace: namespace}, nil
}

func (c *CustomMetrics) values(q query, selector labels.Selector, now time.Time) (*custom_metrics.MetricValueList,
	error,
) {
	names, err := c.config.Lister.Names(q.kind.resource, q.namespace, selector)
	if err != nil {
		return nil, response.Errorf(response.Unknown, "%s", err)
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

func (c *CustomMetrics) value(q query, name string, now time.Time) (*custom_metrics.MetricValue, error) {
	read := c.signal
	if q.metric.policyOnly() {
		read = c.decision
	}
	m, err := read(q, name, now)
	if err != nil {
		return nil, err
	}
	number, err := quantity(m.number, q.metric.unit)
	if err != nil {
		return nil, err
	}
	return &custom_metrics.MetricValue{
		DescribedObject: custom_metrics.ObjectReference{
			APIVersion: q.kind.apiVersion, Kind: q.kind.kind, Namespace: q.namespace, Name: name,
		},
		Metric:    custom_metrics.MetricIdentifier{Name: q.metric.name},
		Timestamp: metav1.NewTime(m.at), WindowSeconds: m.windowSeconds, Value: number,
	}, nil
}

type measured struct {
	number float64
	at     time.Time
	// windowSeconds is the window of a rate; nil for other numbers.
	windowSeconds *int64
}

func (c *CustomMetrics) decision(q query, name string, now time.Time) (measured, error) {
	p, err := c.config.Policies.Policy(types.NamespacedName{Namespace: q.namespace, Name: name})
	if err != nil {
		return measured{}, response.Unread(q.describe(name), err)
	}
	if err := c.config.DecisionMaker.Current(p, now); err != nil {
		return measured{}, response.Errorf(response.Unknown, "%s", err)
	}
	desired, err := served.Desired(p)
	if err != nil {
		return measured{}, response.Errorf(response.Unknown, "%s", err)
	}
	return measured{number: float64(desired.Replicas), at: desired.MeasuredAt}, nil
}

func (c *CustomMetrics) signal(q query, name string, now time.Time) (measured, error) {
	key := types.NamespacedName{Namespace: q.namespace, Name: name}
	reading, err := c.config.Signals.Read(q.kind.resource, key, q.metric.detail, now)
	if err != nil {
		return measured{}, response.Unread(q.describe(name), err)
	}
	number, err := q.metric.measure(reading).Value()
	if err != nil {
		return measured{}, response.Errorf(response.Unknown, "%s", err)
	}
	at, window := q.metric.when(reading)
	m := measured{number: number, at: at}
	if window > 0 || q.metric.unit == perSecond {
		m.windowSeconds = new(max(1, int64(math.Round(window.Seconds()))))
	}
	return m, nil
}

// statusError is the status for an error. Unknown is a 503: the HorizontalPodAutoscaler asks again at its next sync.
// client-go repeats a 429 or 5xx at once only with a Retry-After header, which the API server sets from
// details.retryAfterSeconds: no status here has details.
//
// Source: client-go rest/with_retry.go (checkWait), apiserver responsewriters/writers.go (ErrorNegotiated).
func statusError(err error) *apierrors.StatusError {
	code, reason := statusOf(response.ReasonOf(err))
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: response.Text(err),
	}}
}

func statusOf(reason response.Reason) (int32, metav1.StatusReason) {
	switch reason {
	case response.NotFound:
		return http.StatusNotFound, metav1.StatusReasonNotFound
	case response.Invalid:
		return http.StatusBadRequest, metav1.StatusReasonBadRequest
	case response.Internal:
		return http.StatusInternalServerError, metav1.StatusReasonInternalError
	default:
		return http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
	}
}
