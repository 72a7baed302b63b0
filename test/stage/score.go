// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"slices"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// Score counts what became of a Function's messages. Each message counts once, by the first time it was done.
type Score struct {
	objective time.Duration
	// mu guards the rest.
	mu    sync.Mutex
	done  map[uint64]struct{}
	late  int
	again int
	waits []time.Duration
	// recent are the waits since the last call of Recent.
	recent []time.Duration
}

func newScore(objective time.Duration) *Score {
	return &Score{objective: objective, done: map[uint64]struct{}{}}
}

// complete takes in a completion; runners call it from many goroutines.
func (s *Score) complete(c replica.Completion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.done[c.Sequence]; again {
		s.again++
		return
	}
	s.done[c.Sequence] = struct{}{}
	wait := c.Done.Sub(c.Published)
	s.waits = append(s.waits, wait)
	s.recent = append(s.recent, wait)
	if wait > s.objective {
		s.late++
	}
}

// Totals are the messages done so far, and how many of them took longer than the objective.
func (s *Score) Totals() (done, late int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.done), s.late
}

// Repeated is how often a message was done that had been done before.
func (s *Score) Repeated() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.again
}

// Quantile of the time from publish to done, over all messages; false before the first.
func (s *Score) Quantile(q float64) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return quantile(s.waits, q)
}

// Recent is the median time from publish to done since the last call, and how many messages were done; false when none
// was.
func (s *Score) Recent() (median time.Duration, done int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done = len(s.recent)
	median, ok = quantile(s.recent, 0.5)
	s.recent = s.recent[:0]
	return median, done, ok
}

func quantile(waits []time.Duration, q float64) (time.Duration, bool) {
	if len(waits) == 0 {
		return 0, false
	}
	sorted := slices.Clone(waits)
	slices.Sort(sorted)
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)], true
}
