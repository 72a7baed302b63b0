// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/fake"
)

// crowd is the state of the Functions of one burst. It is safe for concurrent use.
type crowd struct {
	names []string
	// mu guards the fields below.
	mu       sync.Mutex
	begun    time.Time
	replicas map[string]int
	// waits are the times from the burst to a Function's first replica, and several counts Functions that had more than
	// one then.
	waits   []time.Duration
	several int
	woke    map[string]bool
}

func newCrowd(n int) *crowd {
	c := &crowd{replicas: map[string]int{}, woke: map[string]bool{}}
	for i := range n {
		c.names = append(c.names, fmt.Sprintf("fn-%04d", i))
		c.replicas[c.names[i]] = 0
	}
	return c
}

// counts are a broker's counts of a Function.
func (c *crowd) counts(function string) (fake.Counts, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	replicas, known := c.replicas[function]
	now := fake.Counts{Replicas: replicas}
	if !c.begun.IsZero() {
		now.Published = burstMessages
	}
	return now, known
}

// burst is the moment at which all Functions get messages.
func (c *crowd) burst(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = now
}

// scaled records spec.replicas of a Function.
func (c *crowd) scaled(function string, replicas int, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replicas[function] = replicas
	if replicas == 0 || c.woke[function] || c.begun.IsZero() {
		return
	}
	c.woke[function] = true
	c.waits = append(c.waits, now.Sub(c.begun))
	if replicas > 1 {
		c.several++
	}
}

// awakened returns the Functions that woke.
func (c *crowd) awakened() awakening {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := newAwakening(c.waits, len(c.names))
	a.BurstRightSized = new(c.several)
	return a
}

// early returns the Functions that have replicas before the burst.
func (c *crowd) early() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.names {
		if c.begun.IsZero() && c.replicas[name] > 0 {
			names = append(names, name)
		}
	}
	return names
}
