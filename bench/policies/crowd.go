// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

// crowd is the state of the Functions of a contender. It is safe for concurrent use.
type crowd struct {
	names []string
	// mu guards the fields below.
	mu       sync.Mutex
	begun    time.Time
	replicas map[string]int
	// came has the times at which autoscalers appeared, in order.
	came []time.Time
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

// autoscaler records a new HorizontalPodAutoscaler.
func (c *crowd) autoscaler(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.came = append(c.came, now)
}

func (c *crowd) autoscalers() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.came)
}

// burst is the moment at which all Functions get messages.
func (c *crowd) burst(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = now
}

func (c *crowd) sinceBurst(now time.Time) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Sub(c.begun).Seconds()
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

// wakes sums up the Functions that woke.
func (c *crowd) wakes() wakes {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := wakes{Woken: len(c.waits), RightSized: c.several}
	w.WokenP50Seconds, w.WokenP99Seconds, w.WokenMaxSeconds = output.Waits(slices.Sorted(slices.Values(c.waits)),
		len(c.names))
	return w
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
