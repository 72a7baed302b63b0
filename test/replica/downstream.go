// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"sync"
	"time"
)

// Downstream is something with a limit of its own that every message needs, such as a database: however many replicas
// call it, together they get so many answers per second and no more.
type Downstream struct {
	every time.Duration // between two answers

	mu   sync.Mutex // guards free
	free time.Time  // when the last call is answered
}

// NewDownstream returns one that answers so many calls per second, which must be more than 0.
func NewDownstream(perSecond float64) *Downstream {
	return &Downstream{every: time.Duration(float64(time.Second) / perSecond)}
}

// answers returns when a call that is made now is answered: after those that were made before. Nil answers at once.
func (d *Downstream) answers(now time.Time) time.Time {
	if d == nil {
		return now
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	// Callers wake up late on a busy machine, which the downstream does not know of: it makes up for that much.
	if oldest := now.Add(-debtMax); d.free.Before(oldest) {
		d.free = oldest
	}
	d.free = d.free.Add(d.every)
	return d.free
}
