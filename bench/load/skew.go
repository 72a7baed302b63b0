// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"sync"
	"time"
)

// skew detects a wrong clock: results that were published before their message was due, or after they were received.
type skew struct {
	mu sync.Mutex // guards most
	// most is the largest seen; above 0 the other clock is ahead.
	most time.Duration
}

func (s *skew) see(due, published, received time.Time) {
	ahead, behind := published.Sub(received), due.Sub(published)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ahead > max(forgivenSkew, s.most.Abs()) {
		s.most = ahead
	}
	if behind > max(forgivenSkew, s.most.Abs()) {
		s.most = -behind
	}
}

func (s *skew) least() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}
