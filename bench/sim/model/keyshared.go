// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// move is the hashes that a new consumer of a Key_Shared subscription took from another.
//
// A hash of which the former consumer holds unacknowledged messages is not dispatched until those are acknowledged or
// their consumer disconnects; one of which it holds none moves at once. With few keys all of them wait until the
// receive queue as it was is done, with many most do not wait at all. A consumer that disconnects holds nothing.
//
// Source: PIP-379, Key_Shared Draining Hashes (Pulsar 4.0 on). Not modelled: that the dispatcher reads no further when
// too many blocked messages are in its way.
type move struct {
	// from is nil once it disconnected.
	from *replica
	// until it received so many messages in all, of this many keys.
	until, keys float64
}

// waiting is the share of the moved hashes of which the former consumer holds messages: the chance that a key has one
// or more of those that are left, when they are spread evenly.
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

// join gives each new consumer its part of the hashes of all that were there.
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

// disconnect takes a consumer's hashes away.
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

// drain updates which share of each replica's hashes waits for a former consumer, and returns that of all.
func (s *statefulSet) drain() float64 {
	sum := 0.0
	for _, r := range s.active {
		r.blocked = 0
		for _, m := range r.moves {
			waiting := m.waiting()
			if m.from != nil { // its own hashes may wait as well
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

// drain sorts what waits by whether its hash's former consumer is done.
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
