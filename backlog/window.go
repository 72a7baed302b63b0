// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import "time"

// point is what one answer said about one subscription of one topic, summed over partitions.
type point struct {
	at         time.Time
	partitions []partitionTotals

	total, delayed, unacked, inReplay, bytes int64
	// throttled is how often a rate limit held dispatch back since the subscription is tracked.
	throttled int64
	// countsUnacked is false for Exclusive and Failover: Pulsar does not count their unacked messages.
	countsUnacked               bool
	hasBytes, blocked, draining bool
	// delaysUnknown says that no consumer is connected, so that delayed leaves out what may be delayed.
	delaysUnknown bool
	// otherType is what some partitions have instead of subType; empty when all agree.
	subType, otherType SubscriptionType
	// meanBatch turns backlog entries into messages; below 1 for those of transactions.
	meanBatch float64
}

// totalMessages is the backlog in messages. Entries are whole batches, so the product is an estimate; with a mean
// batch of 1 it is exact.
func (p point) totalMessages() float64 { return float64(p.total) * p.meanBatch }

// ready leaves out delayed messages. Pulsar counts those in messages and the backlog in entries, so the difference can
// fall below 0 by the error of the mean batch; less than nothing is nothing.
func (p point) ready() float64 { return readyMessages(p.total, p.delayed, p.meanBatch) }

func readyMessages(entries, delayed int64, meanBatch float64) float64 {
	return max(0, float64(entries)*meanBatch-float64(delayed))
}

// undispatched is what no consumer holds yet.
func (p point) undispatched() float64 { return max(0, p.ready()-float64(p.unacked)) }

// history is the recent answers about one subscription of one topic, oldest first.
type history struct {
	points []point
	// consumers is the number connected at each full answer, oldest first; slim answers do not say.
	consumers []consumerCount
}

type consumerCount struct {
	at    time.Time
	count int
}

// add appends and drops what a window of the given length no longer needs: all before the newest point that is at
// least the window old.
func (h *history) add(p point, window time.Duration) {
	h.points = append(h.points, p)
	h.points = dropBefore(h.points, p.at.Add(-window), func(q point) time.Time { return q.at })
}

func (h *history) addConsumers(c consumerCount, window time.Duration) {
	h.consumers = append(h.consumers, c)
	h.consumers = dropBefore(h.consumers, c.at.Add(-window), func(q consumerCount) time.Time { return q.at })
}

// dropBefore keeps the last element at or before the bound and everything after it. It moves elements to the front
// rather than slicing them off, so the array is reused and a long life does not grow it.
func dropBefore[T any](elements []T, bound time.Time, at func(T) time.Time) []T {
	first := 0
	for first+1 < len(elements) && !at(elements[first+1]).After(bound) {
		first++
	}
	if first == 0 {
		return elements
	}
	kept := copy(elements, elements[first:])
	clear(elements[kept:])
	return elements[:kept]
}

func (h *history) last() point { return h.points[len(h.points)-1] }

// steadyConsumers says whether the number of consumers is known and held since the given time.
func (h *history) steadyConsumers(since time.Time) bool {
	if len(h.consumers) == 0 || h.consumers[0].at.After(since) {
		return false
	}
	for _, c := range h.consumers {
		if c.count != h.consumers[0].count {
			return false
		}
	}
	return true
}
