// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import "time"

// flow is a running total that survives counter resets: messages counted over observed time. A pair of answers with a
// reset between them adds to neither, so a rate over a window is never too low because of a restart of the broker.
type flow struct {
	messages float64
	observed time.Duration
}

// point is what one answer said about one subscription of one topic, summed over partitions.
type point struct {
	at        time.Time
	published flow
	processed flow

	total, delayed, unacked int64
	// countsUnacked is false for Exclusive and Failover, whose unacked messages Pulsar does not count.
	countsUnacked bool
	blocked       bool
	subType       SubscriptionType
	// meanBatch turns backlog entries into messages; at least 1.
	meanBatch float64
}

// totalMessages is the backlog in messages. Entries are whole batches, so the product is an estimate; with a mean
// batch of 1 it is exact.
func (p point) totalMessages() float64 { return float64(p.total) * p.meanBatch }

// ready leaves out delayed messages. Pulsar counts those in messages and the backlog in entries, so the difference can
// fall below 0 by the error of the mean batch; less than nothing is nothing.
func (p point) ready() float64 { return max(0, p.totalMessages()-float64(p.delayed)) }

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
	return elements[:copy(elements, elements[first:])]
}

func (h *history) last() point { return h.points[len(h.points)-1] }

// rate is the flow between the first and the last point over the time that was observed between them.
func rate(first, last flow) Measurement {
	observed := last.observed - first.observed
	messages := last.messages - first.messages
	if observed <= 0 || messages < 0 {
		return Unknown(ErrNoRate)
	}
	return Known(messages / observed.Seconds())
}

// read sums up the history of one subscription of one topic.
func (h *history) read() Reading {
	first, last := h.points[0], h.last()
	r := Reading{
		At:           last.at,
		Type:         last.subType,
		Total:        Known(last.totalMessages()),
		Ready:        Known(last.ready()),
		Delayed:      Known(float64(last.delayed)),
		Unacked:      Unknown(errUnackedNotCounted),
		Undispatched: Unknown(errUnackedNotCounted),
		PublishRate:  rate(first.published, last.published),
		ProcessRate:  rate(first.processed, last.processed),
		Window:       last.at.Sub(first.at),
		Blocked:      last.blocked,
	}
	leastReady, leastUndispatched := last.ready(), last.undispatched()
	for _, p := range h.points {
		leastReady = min(leastReady, p.ready())
		leastUndispatched = min(leastUndispatched, p.undispatched())
	}
	r.LeastReady = Known(leastReady)
	r.LeastUndispatched = Unknown(errUnackedNotCounted)
	if last.countsUnacked {
		r.Unacked = Known(float64(last.unacked))
		r.Undispatched = Known(last.undispatched())
		r.LeastUndispatched = Known(leastUndispatched)
	}
	r.Consumers, r.SteadyConsumers = h.readConsumers(first.at)
	return r
}

// readConsumers returns the newest count and whether it held since the given time.
func (h *history) readConsumers(since time.Time) (Measurement, bool) {
	if len(h.consumers) == 0 {
		return Unknown(ErrNotAsked), false
	}
	newest := h.consumers[len(h.consumers)-1]
	steady := !h.consumers[0].at.After(since)
	for _, c := range h.consumers {
		steady = steady && c.count == newest.count
	}
	return Known(float64(newest.count)), steady
}
