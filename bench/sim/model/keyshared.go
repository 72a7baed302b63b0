// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// move is the hashes that a new consumer of a Key_Shared subscription took from another.
//
// Pulsar does not dispatch a hash while its former consumer holds unacknowledged messages of it, until that
// acknowledges them or disconnects; a hash without such messages moves at once. With few keys all of them wait until
// the receive queue of that time is processed; with many most do not wait. A consumer that disconnects holds nothing.
//
// Source: PIP-379, Key_Shared Draining Hashes (Pulsar 4.0 on). Not modelled: the dispatcher stops reading if too many
// blocked messages are in its way.
type move struct {
	// from is nil once it has disconnected.
	from *replica
	// until that consumer has received this many messages in all, of this many keys.
	until, keys float64
}

// waiting is the share of the moved hashes with messages at the former consumer: the probability that a key has at
// least one of the remaining messages, if they are spread evenly.
func (m move) waiting() float64 {
	if m.from == nil {
		return 0
	}
	left := m.until - (m.from.received - m.from.queue.total)
	if left <= 1e-6 {
		return 0
	}
	return 1 - math.Exp(-left/m.keys)
}

// join assigns each new consumer its part of the existing consumers' hashes.
func (s *statefulSet) join() {
	if s.scenario.Type != backlog.KeyShared {
		return
	}
	var former []*replica
	for _, r := range s.active {
		if r.joined {
			former = append(former, r)
		}
	}
	for _, r := range s.active {
		if r.joined {
			continue
		}
		r.joined = true
		for _, f := range former {
			r.moves = append(r.moves, move{from: f, until: f.received, keys: s.scenario.Keys / float64(len(former))})
		}
	}
}

// disconnect removes a consumer's hashes.
func (s *statefulSet) disconnect(gone *replica) {
	gone.joined, gone.moves, gone.blocked = false, nil, 0
	for _, r := range s.replicas {
		for i := range r.moves {
			if r.moves[i].from == gone {
				r.moves[i].from = nil
			}
		}
	}
}

// drain updates the share of each replica's hashes that waits for a former consumer, and returns that of all.
func (s *statefulSet) drain() float64 {
	sum := 0.0
	for _, r := range s.active {
		r.blocked = 0
		for _, m := range r.moves {
			waiting := m.waiting()
			if m.from != nil { // its own hashes may wait too
				waiting += (1 - waiting) * m.from.blocked
			}
			r.blocked += waiting / float64(len(r.moves))
		}
		if r.blocked == 0 {
			r.moves = nil
		}
		sum += r.blocked
	}
	return sum / max(1, float64(len(s.active)))
}

// drain moves messages between queues as former consumers of their hashes finish.
func (b *subscription) drain(second int) {
	if b.scenario.Type != backlog.KeyShared {
		return
	}
	now := b.set.drain()
	free, blocked := &b.waiting[freeQueue], &b.waiting[drainingQueue]
	arrived := free.split(b.draining, second)
	blocked.putBack(&arrived)
	var moved queue
	switch {
	case now > b.draining:
		moved = free.split((now-b.draining)/(1-b.draining), -1)
		blocked.putBack(&moved)
	case now == 0:
		free.putBack(blocked)
	case now < b.draining:
		moved = blocked.split((b.draining-now)/b.draining, -1)
		free.putBack(&moved)
	}
	b.draining = now
}
