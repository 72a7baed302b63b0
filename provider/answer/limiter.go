// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

const (
	// Timeout is how long one answer may take. The HorizontalPodAutoscaler controller requests with 5 workers and no
	// timeout of its own, and KEDA sets no deadline: an answer that hangs blocks all autoscalers of the cluster.
	Timeout = 250 * time.Millisecond
	// MaxConcurrent answers, as many as the API server lets requests in; more wait for a turn, for Timeout at most. One
	// that hangs counts also when its client already has an error: they cannot pile up.
	MaxConcurrent = 400
)

// Limiter bounds how many answers a program works on at once.
type Limiter struct {
	// program is who answers, for error texts.
	program string
	// turns has an element for each answer that is being worked on.
	turns chan struct{}
}

// NewLimiter returns the limiter of a program, such as adapter.
func NewLimiter(program string) *Limiter {
	return &Limiter{program: program, turns: make(chan struct{}, MaxConcurrent)}
}

// result is how the work on an answer ended.
type result[T any] struct {
	value    T
	err      error
	panicked string
}

// Do runs the work and gives up waiting for it after Timeout, or when the client is gone.
func Do[T any](ctx context.Context, l *Limiter, work func(ctx context.Context) (T, error)) (T, error) {
	var none T
	limited, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	select {
	case l.turns <- struct{}{}:
	case <-limited.Done():
		return none, l.late(ctx, Errorf(Busy, "the %s is overloaded: %d answers are under way", l.program, MaxConcurrent))
	}
	done := make(chan result[T], 1)
	go func() {
		defer func() { <-l.turns }()
		done <- run(limited, work)
	}()
	select {
	case r := <-done:
		if r.panicked != "" {
			panic(r.panicked) // in the request's goroutine, where the server logs it
		}
		return r.value, r.err
	case <-limited.Done():
		return none, l.late(ctx, Errorf(TooSlow, "the %s did not answer within %s", l.program, Timeout))
	}
}

// late is the error after the time is over: err, unless the client is gone.
func (l *Limiter) late(client context.Context, err error) error {
	if client.Err() != nil {
		return Errorf(Canceled, "the client is gone")
	}
	return err
}

// run returns a panic of the work as a value: unhandled in a goroutine of its own it would end the process.
func run[T any](ctx context.Context, work func(context.Context) (T, error)) (r result[T]) {
	defer func() {
		if cause := recover(); cause != nil {
			r.panicked = fmt.Sprintf("%v\n%s", cause, debug.Stack())
		}
	}()
	r.value, r.err = work(ctx)
	return r
}
