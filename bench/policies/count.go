// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// ledger records when objects of a kind appear and how often they change. It is safe for concurrent use.
type ledger struct {
	// mu guards the fields below.
	mu sync.Mutex
	// came has the times at which objects appeared, in order.
	came    []time.Time
	changes int
}

func (l *ledger) take(event watch.EventType, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch event {
	case watch.Added:
		l.came = append(l.came, now)
	case watch.Modified:
		l.changes++
	default: // bookmarks, and deletions during the clean-up
	}
}

// arrivals returns how many objects appeared, and when the last did.
func (l *ledger) arrivals() (count int, last time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.came) == 0 {
		return 0, last
	}
	return len(l.came), l.came[len(l.came)-1]
}

func (l *ledger) firstArrival() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.came) == 0 {
		return time.Time{}
	}
	return l.came[0]
}

func (l *ledger) changed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes
}
