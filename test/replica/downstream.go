// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"sync"
	"time"
)

// Downstream is a dependency of every message with a limit of its own, such as a database. All replicas together get at
// most that many responses per second.
type Downstream struct {
	every time.Duration // between two responses

	mu   sync.Mutex // guards free
	free time.Time  // when it responds to the last call
}

// NewDownstream returns a Downstream that responds to perSecond calls per second; perSecond is positive.
func NewDownstream(perSecond float64) *Downstream {
	return &Downstream{every: time.Duration(float64(time.Second) / perSecond)}
}

// answers returns when a call made now gets its response. Nil responds at once.
func (d *Downstream) answers(now time.Time) time.Time {
	if d == nil {
		return now
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	// Callers wake up late on a busy machine. The downstream makes up for at most debtMax of that.
	if oldest := now.Add(-debtMax); d.free.Before(oldest) {
		d.free = oldest
	}
	d.free = d.free.Add(d.every)
	return d.free
}
