// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"sync"
	"time"
)

const (
	// leastLag is the delay of an idle machine at times.
	leastLag = 100 * time.Millisecond
	// maxUnsent is the tolerated share of unsent messages.
	maxUnsent = 0.001
)

// Lag is how late a publisher itself has been, and how long the broker accepted no messages.
type Lag struct {
	// Late is from when a message was due, or could be passed to the client, until it was. It excludes the broker's part.
	Late Latencies `json:"late"`
	// Blocked is how long the publisher waited because too many messages were pending at the broker.
	Blocked time.Duration `json:"blockedNanoseconds"`
}

// Bottleneck returns why the publisher, and not the measured system, limited a load of this many messages; "" if it did
// not.
func (l Lag) Bottleneck(objective time.Duration, due, sent int64) string {
	limit := max(leastLag, objective/10)
	switch {
	case l.Late.P99 > limit:
		return fmt.Sprintf("1 %% of the messages were published at least %s late, more than %s, by the tool itself: "+
			"lower the rate, or run it on a machine with more CPU", l.Late.P99, limit)
	case float64(due-sent) > maxUnsent*float64(due):
		return fmt.Sprintf("%d of %d messages were not sent; for %s Pulsar took none: lower the rate, or use more partitions",
			due-sent, due, l.Blocked.Round(time.Millisecond))
	}
	return ""
}

// lag collects a Lag.
type lag struct {
	mu      sync.Mutex // guards all below
	late    *histogram
	free    time.Time // when the broker last accepted messages again
	waiting time.Duration
}

func newLag() *lag { return &lag{late: newHistogram()} }

func (l *lag) blocked(begun, ended time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = ended
	l.waiting += ended.Sub(begun)
}

func (l *lag) sent(due, sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free.After(due) {
		due = l.free
	}
	l.late.record(sent.Sub(due))
}

func (l *lag) summary() Lag {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Lag{Late: l.late.latencies(), Blocked: l.waiting}
}
