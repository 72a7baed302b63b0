// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// requestTimeout bounds one request. The adapter answers within 250 ms or says that it cannot, and the aggregator gives
// up after 60 s: what takes longer than this is lost for the HorizontalPodAutoscaler controller's sync period of 15 s.
const requestTimeout = 10 * time.Second

// effort says how much to ask: so many clients at the same time, until all requests are sent or the limit has passed.
type effort struct {
	clients, requests int
	limit             time.Duration
}

// outcome is what came of it.
type outcome struct {
	// waits are the times that good answers took, in no order.
	waits []time.Duration
	// failed requests, and why one of them was.
	failed  int
	because error
	elapsed time.Duration
}

// measure asks as the effort says. Requests that are under way when the limit passes are waited for and count. It fails
// only when ctx ends before.
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
	_ = clients.Wait() // failed requests are an outcome
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

// timed asks once.
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
