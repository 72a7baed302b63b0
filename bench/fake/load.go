// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"math"
	"sync"
	"time"
)

const (
	// Capacity of one replica, in messages per second.
	Capacity = 25
	// step of the integration: the fast wave takes 47 s.
	step = 500 * time.Millisecond
)

// Waves are how far a publish rate varies around its mean, in shares of it: slowly within 4 minutes, and fast within 47
// s. The zero value is a constant rate.
type Waves struct{ Slow, Fast float64 }

// Load is how much is published to one Function, and the work of its replicas. It is safe for concurrent use.
type Load struct {
	// phase of the waves, from 0 to 1.
	phase float64
	waves Waves
	begun time.Time

	// mu guards the fields below.
	mu    sync.Mutex
	until time.Time
	// mean is the publish rate in messages per second.
	mean     float64
	replicas int
	// published and done are numbers of messages.
	published, done float64
}

// NewLoad returns the load of a Function with one replica.
func NewLoad(mean, phase float64, waves Waves, now time.Time) *Load {
	return &Load{mean: mean, phase: phase, waves: waves, begun: now, until: now, replicas: 1}
}

// rate is the publish rate at a time. mu is held, or nothing else has the load.
func (l *Load) rate(at time.Time) float64 {
	const slow, fast = 240, 47
	t := at.Sub(l.begun).Seconds()
	swing := func(period float64) float64 { return math.Sin(2 * math.Pi * (t/period + l.phase)) }
	return l.mean * (1 + l.waves.Slow*swing(slow) + l.waves.Fast*swing(fast))
}

// Publish sets the mean publish rate.
func (l *Load) Publish(mean float64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(now)
	l.mean = mean
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
	for l.until.Before(now) {
		next := l.until.Add(step)
		if next.After(now) {
			next = now
		}
		seconds := next.Sub(l.until).Seconds()
		l.published += l.rate(l.until) * seconds
		l.done = min(l.published, l.done+float64(l.replicas)*Capacity*seconds)
		l.until = next
	}
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
