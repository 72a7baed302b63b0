// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"sync"
	"time"
)

// Capacity of one replica, in messages per second.
const Capacity = 25

// Load is how much is published to one Function, and the work of its replicas. It is safe for concurrent use.
type Load struct {
	// mu guards the fields below.
	mu    sync.Mutex
	until time.Time
	// rate is what is published, in messages per second.
	rate     float64
	replicas int
	// published and done are numbers of messages.
	published, done float64
}

// NewLoad returns the load of a Function with one replica.
func NewLoad(rate float64, now time.Time) *Load { return &Load{rate: rate, until: now, replicas: 1} }

// Publish sets the publish rate.
func (l *Load) Publish(rate float64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(now)
	l.rate = rate
}

// Scale sets the number of working replicas.
func (l *Load) Scale(replicas int, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(now)
	l.replicas = replicas
}

// Counts are a broker's counts now.
func (l *Load) Counts(now time.Time) Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(now)
	return Counts{Published: int64(l.published), Done: int64(l.done), Replicas: l.replicas}
}

// advance publishes and processes up to now. Callers hold mu.
func (l *Load) advance(now time.Time) {
	seconds := max(0, now.Sub(l.until).Seconds())
	l.published += l.rate * seconds
	l.done = min(l.published, l.done+float64(l.replicas)*Capacity*seconds)
	l.until = now
}

// Loads are those of Functions by their names.
type Loads map[string]*Load

// Pulsar serves the load of each Function so far.
func (l Loads) Pulsar(now func() time.Time) Pulsar {
	return func(function string) (Counts, bool) {
		one := l[function]
		if one == nil {
			return Counts{}, false
		}
		return one.Counts(now()), true
	}
}
