// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/fake"
)

const (
	// capacity of one replica, in messages per second.
	capacity = 25
	// step of the integration: the fast swing takes 47 s.
	step = 500 * time.Millisecond
)

// work is the load of one Function and the work of its replicas. It is safe for concurrent use.
type work struct {
	// mean is the publish rate in messages per second, and phase that of its waves, from 0 to 1.
	mean, phase float64
	begun       time.Time

	// mu guards the fields below.
	mu       sync.Mutex
	until    time.Time
	replicas int
	// published and done are numbers of messages.
	published, done float64
}

// newWork returns the i-th of n. The means are from 15 to 90 messages per second, which need 1 to 6 replicas.
func newWork(i, n int, now time.Time) *work {
	const least, most = 15, 90
	share := float64(i) / float64(n)
	return &work{mean: least + (most-least)*share, phase: math.Mod(share*17, 1), begun: now, until: now, replicas: 1}
}

// rate is the publish rate at a time: a slow wave of half the mean within 4 minutes and a fast one of a third within 47
// s.
func (w *work) rate(at time.Time) float64 {
	const slow, fast, deep, shallow = 240, 47, 0.5, 0.3
	t := at.Sub(w.begun).Seconds()
	swing := func(period float64) float64 { return math.Sin(2 * math.Pi * (t/period + w.phase)) }
	return w.mean * (1 + deep*swing(slow) + shallow*swing(fast))
}

// scale sets the number of working replicas.
func (w *work) scale(replicas int, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advance(now)
	w.replicas = replicas
}

func (w *work) counts(now time.Time) fake.Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advance(now)
	return fake.Counts{Published: int64(w.published), Done: int64(w.done), Replicas: w.replicas}
}

// advance publishes and processes up to now. Callers hold mu.
func (w *work) advance(now time.Time) {
	for w.until.Before(now) {
		next := w.until.Add(step)
		if next.After(now) {
			next = now
		}
		seconds := next.Sub(w.until).Seconds()
		w.published += w.rate(w.until) * seconds
		w.done = min(w.published, w.done+float64(w.replicas)*capacity*seconds)
		w.until = next
	}
}
