// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/rand/v2"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// redelivery is when a failed message is retried: a client's negativeAckRedeliveryDelay, in seconds.
const redelivery = 60

// The queues in the field waiting, for types other than Failover.
const (
	freeQueue = iota
	hotQueue
	drainingQueue
)

// subscription is the broker's state of the one subscription.
type subscription struct {
	scenario *Scenario
	topics   *topics
	set      *statefulSet
	// waiting has a queue for each partition with Failover, else one for all, one for a hot key and one for hashes with
	// messages at a former consumer.
	waiting []queue
	// nacked messages are at their consumer for a minute, by the second of that, and then in retries.
	nacked  [redelivery]queue
	retries queue
	delayed delayed
	// poisoned messages always fail, the first since poisonedAt.
	poisoned   float64
	poisonedAt int
	// draining is the share of all hashes with messages at a former consumer.
	draining float64
	// turn is the replica that gets the next whole message, and random draws the length of calls.
	turn   int
	random *rand.Rand
}

func newSubscription(s *Scenario, t *topics, set *statefulSet, random *rand.Rand) subscription {
	queues := 1
	switch {
	case s.Type == backlog.Failover:
		queues = s.Partitions
	case s.HotKey != nil || s.Type == backlog.KeyShared:
		queues = drainingQueue + 1
	}
	return subscription{
		scenario: s, topics: t, set: set, waiting: make([]queue, queues), delayed: delayed{byDue: map[int][]float64{}},
		random: random,
	}
}

// publish adds the messages of a second, by partition, then by further topic.
func (b *subscription) publish(arrived []float64, second int) {
	s := b.scenario
	for i, count := range arrived {
		if b.poisoned <= dust {
			b.poisonedAt = second
		}
		b.poisoned += count * s.Poison
		good := count * (1 - s.Poison)
		later := good * s.Delayed
		to := freeQueue
		switch {
		case s.Type == backlog.Failover:
			to = i % len(b.waiting)
		case s.HotKey != nil:
			hot := (good - later) * s.HotKey(float64(second))
			b.waiting[hotQueue].push(second, hot)
			good -= hot
		}
		b.waiting[to].push(second, good-later)
		if later > 0 {
			b.delayed.add(second+int(s.Delay/time.Second), to, later, b)
		}
	}
}

// deliverDelayed moves the delayed messages that are due to their queues.
func (b *subscription) deliverDelayed(second int) {
	for i, count := range b.delayed.byDue[second] {
		b.waiting[i].push(second, count)
		b.delayed.total -= count
		b.delayed.known = max(0, min(b.delayed.total, b.delayed.known-count))
	}
	delete(b.delayed.byDue, second)
	if len(b.set.active) > 0 {
		b.delayed.known = b.delayed.total // the dispatcher has read on
	}
}

// delayed messages are held back until they are due.
type delayed struct {
	// byDue has counts by due second, then by queue.
	byDue map[int][]float64
	total float64
	// known ones are those that the dispatcher has read, which it does only with consumers.
	known float64
}

func (d *delayed) add(due, to int, count float64, b *subscription) {
	if d.byDue[due] == nil {
		d.byDue[due] = make([]float64, len(b.waiting))
	}
	d.byDue[due][to] += count
	d.total += count
	if len(b.set.active) > 0 {
		d.known += count
	}
}

// redeliverNacked takes back messages that failed a minute ago: they are dispatched before new ones.
func (b *subscription) redeliverNacked(second int) {
	if b.scenario.Failing != nil {
		b.retries.putBack(&b.nacked[second%redelivery])
	}
}

// each visits every queue of messages that can be processed.
func (b *subscription) each(look func(*queue)) {
	for i := range b.waiting {
		look(&b.waiting[i])
	}
	for _, r := range b.set.replicas {
		look(&r.queue)
	}
	for i := range b.nacked {
		look(&b.nacked[i])
	}
	look(&b.retries)
}

// queued messages wait for a replica or are at one.
func (b *subscription) queued() float64 {
	sum := 0.0
	b.each(func(q *queue) { sum += q.total })
	return sum
}

// nackedTotal are the messages that failed less than a minute ago.
func (b *subscription) nackedTotal() float64 {
	sum := 0.0
	for i := range b.nacked {
		sum += b.nacked[i].total
	}
	return sum
}

// held messages are never acknowledged, as in a window function.
func (b *subscription) held() float64 { return b.scenario.Held * float64(len(b.set.active)) }

// unacked messages are at consumers: in their queues, held, or failed and not retried yet.
func (b *subscription) unacked() float64 {
	sum := b.held()
	for _, r := range b.set.active {
		sum += r.queue.total
	}
	if len(b.set.active) > 0 {
		sum += b.poisoned + b.nackedTotal()
	}
	return sum
}

// oldest is when the oldest message that can be processed arrived.
func (b *subscription) oldest(second int) (at int, ok bool) {
	at = second
	b.each(func(q *queue) {
		if first, some := q.oldest(); some {
			at, ok = min(at, first), true
		}
	})
	return at, ok
}
