// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// partitionCounts remembers how many partitions topics have.
type partitionCounts struct {
	ttl time.Duration

	mu sync.Mutex
	// counts and swept are guarded by mu.
	counts map[backlog.Topic]partitionCount
	swept  time.Time
}

type partitionCount struct {
	count int
	at    time.Time
}

func newPartitionCounts(ttl time.Duration) *partitionCounts {
	return &partitionCounts{ttl: ttl, counts: map[backlog.Topic]partitionCount{}}
}

func (p *partitionCounts) lookup(topic backlog.Topic, now time.Time) (count int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.counts[topic]
	if !ok || now.Sub(known.at) >= p.ttl {
		return 0, false
	}
	return known.count, true
}

// store also drops, once per ttl, what has expired: topics that nobody fetches any more.
func (p *partitionCounts) store(topic backlog.Topic, count int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[topic] = partitionCount{count: count, at: now}
	if now.Sub(p.swept) < p.ttl {
		return
	}
	p.swept = now
	for other, known := range p.counts {
		if now.Sub(known.at) >= p.ttl {
			delete(p.counts, other)
		}
	}
}

func (p *partitionCounts) forget(topic backlog.Topic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.counts, topic)
}
