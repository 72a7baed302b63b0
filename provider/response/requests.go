// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package response

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
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

// Buckets of the durations of requests, in seconds: most take microseconds, and Timeout is 0.25.
func Buckets() []float64 {
	return []float64{.00001, .00005, .0001, .0005, .001, .005, .01, .05, .1, .25, .5}
}
