// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// budget is how long one answer may take.
const budget = 250 * time.Millisecond

// maxAnswers under way at once, as many as the API server lets requests in. An answer that hangs goes on to count when
// its client already has an error: they cannot pile up without bound.
const maxAnswers = 400

// answer is how the work on an answer ended.
type answer[T any] struct {
	value    T
	err      error
	panicked string
}

// inTime runs the work and gives up waiting for it after budget, or when the client is gone.
func inTime[T any](ctx context.Context, c *CustomMetrics, work func() (T, error)) (T, error) {
	var none T
	limited, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	done := make(chan answer[T], 1)
	started := c.answers.TryGo(func() error {
		done <- guard(work)
		return nil
	})
	if !started {
		return none, newFault(errBusy, "the adapter is overloaded: %d answers are under way", maxAnswers)
	}
	select {
	case a := <-done:
		if a.panicked != "" {
			panic(a.panicked) // in the request's goroutine, where the API server logs it and answers 500
		}
		return a.value, a.err
	case <-limited.Done():
		if ctx.Err() != nil {
			return none, newFault(errGone, "the client is gone")
		}
		return none, newFault(errTooSlow, "the adapter did not answer within %s", budget)
	}
}

// guard runs the work and reports a panic as a value: unhandled in a goroutine of its own it would end the process.
func guard[T any](work func() (T, error)) (a answer[T]) {
	defer func() {
		if cause := recover(); cause != nil {
			a.panicked = fmt.Sprintf("%v\n%s", cause, debug.Stack())
		}
	}()
	a.value, a.err = work()
	return a
}
