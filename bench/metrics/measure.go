// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// requestTimeout bounds one request. The adapter responds within 250 ms, if only with an error, and the aggregator
// gives up after 60 s: anything slower is lost for the HorizontalPodAutoscaler controller's sync period of 15 s.
const requestTimeout = 10 * time.Second

// effort is the number of concurrent clients, and their limit: a number of requests, or a time.
type effort struct {
	clients, requests int
	limit             time.Duration
}

// outcome is the result of an effort.
type outcome struct {
	// waits are the durations of successful requests, in no order.
	waits []time.Duration
	// failed requests, and the error of one of them.
	failed  int
	because error
	elapsed time.Duration
}

// measure runs an effort. Requests that are running at the limit complete and count. It fails only if ctx ends first.
func measure(ctx context.Context, e effort, ask func(ctx context.Context) error) (outcome, error) {
	var sent atomic.Int64
	start := time.Now()
	more := func() bool {
		return ctx.Err() == nil && time.Since(start) < e.limit && sent.Add(1) <= int64(e.requests)
	}
	each := make([]outcome, e.clients)
	var clients errgroup.Group
	for i := range each {
		clients.Go(func() error {
			for more() {
				each[i].add(timed(ctx, ask))
			}
			return nil
		})
	}
	_ = clients.Wait() // failed requests are part of the outcome
	total := outcome{elapsed: time.Since(start)}
	for _, one := range each {
		total.waits = append(total.waits, one.waits...)
		total.failed += one.failed
		if total.because == nil {
			total.because = one.because
		}
	}
	return total, ctx.Err()
}

// timed sends one request.
func timed(ctx context.Context, ask func(ctx context.Context) error) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	start := time.Now()
	err := ask(ctx)
	return time.Since(start), err
}

func (o *outcome) add(wait time.Duration, err error) {
	if err == nil {
		o.waits = append(o.waits, wait)
		return
	}
	o.failed++
	if o.because == nil {
		o.because = err
	}
}
