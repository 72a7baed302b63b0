// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package response

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const (
	// Timeout bounds one response. The HorizontalPodAutoscaler controller requests with 5 workers and no timeout of its
	// own, and KEDA sets no deadline: a hanging response blocks all autoscalers of the cluster.
	Timeout = 250 * time.Millisecond
	// MaxConcurrent is the number of concurrent requests, as many as the API server admits; more are queued, for Timeout
	// at most. One that hangs counts even after its client got an error, so that they cannot pile up.
	MaxConcurrent = 400
)

// Limiter bounds the concurrent requests of a program.
type Limiter struct {
	// program is the name in error texts.
	program string
	// turns has an element for each running request.
	turns chan struct{}
}

// NewLimiter returns the limiter of a program, such as adapter.
func NewLimiter(program string) *Limiter {
	return &Limiter{program: program, turns: make(chan struct{}, MaxConcurrent)}
}

// result is how the work ended.
type result[T any] struct {
	value    T
	err      error
	panicked string
}

// Do runs the work and stops waiting for it after Timeout, or when the client is gone.
func Do[T any](ctx context.Context, l *Limiter, work func(ctx context.Context) (T, error)) (T, error) {
	var none T
	limited, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	select {
	case l.turns <- struct{}{}:
	case <-limited.Done():
		return none, l.late(ctx, Errorf(Busy, "the %s is overloaded: %d requests are running", l.program, MaxConcurrent))
	}
	done := make(chan result[T], 1)
	go func() {
		defer func() { <-l.turns }()
		done <- run(func() (T, error) { return work(limited) })
	}()
	select {
	case r := <-done:
		if r.panicked != "" {
			panic(r.panicked) // in the request's goroutine, where the server logs it
		}
		return r.value, r.err
	case <-limited.Done():
		return none, l.late(ctx, Errorf(TooSlow, "the %s did not respond within %s", l.program, Timeout))
	}
}

// late returns the error after the time limit: err, unless the client is gone.
func (l *Limiter) late(client context.Context, err error) error {
	if client.Err() != nil {
		return Errorf(Canceled, "the client is gone")
	}
	return err
}

// Aside runs the work on a stack of its own and waits for it, so that the stack of a goroutine that waits for minutes
// stays small. A panic of the work is one of the caller.
func Aside(work func() error) error {
	done := make(chan result[struct{}], 1)
	go func() { done <- run(func() (struct{}, error) { return struct{}{}, work() }) }()
	r := <-done
	if r.panicked != "" {
		panic(r.panicked)
	}
	return r.err
}

// run returns a panic of the work as a value: unhandled in its own goroutine it would end the process.
func run[T any](work func() (T, error)) (r result[T]) {
	defer func() {
		if cause := recover(); cause != nil {
			r.panicked = fmt.Sprintf("%v\n%s", cause, debug.Stack())
		}
	}()
	r.value, r.err = work()
	return r
}

// Metrics count requests by result, and measure their duration.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// MetricsConfig has the names of the metrics.
type MetricsConfig struct {
	// Subsystem of pulsar_autoscaler_<subsystem>_requests_total and _request_duration_seconds.
	Subsystem string
	// RequestsHelp and DurationHelp describe them.
	RequestsHelp, DurationHelp string
	// Labels of both; requests have Result in addition.
	Labels []string
	Result string
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer, config MetricsConfig) *Metrics {
	factory := promauto.With(registerer)
	m := &Metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "pulsar_autoscaler_" + config.Subsystem + "_requests_total", Help: config.RequestsHelp,
		}, slices.Concat(config.Labels, []string{config.Result})),
		duration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pulsar_autoscaler_" + config.Subsystem + "_request_duration_seconds", Help: config.DurationHelp,
			Buckets: []float64{.00001, .00005, .0001, .0005, .001, .005, .01, .05, .1, .25, .5},
		}, config.Labels),
	}
	if len(config.Labels) == 0 {
		m.duration.WithLabelValues() // created at zero
	}
	return m
}

// Requests returns the counter of requests with the result.
func (m *Metrics) Requests(result string, labels ...string) prometheus.Counter {
	return m.requests.WithLabelValues(slices.Concat(labels, []string{result})...)
}

// Answered counts a request with its duration.
func (m *Metrics) Answered(took time.Duration, result string, labels ...string) {
	m.Requests(result, labels...).Inc()
	m.duration.WithLabelValues(labels...).Observe(took.Seconds())
}
