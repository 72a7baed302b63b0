// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"cmp"
	"slices"
	"time"
)

// point is one answer about one subscription of one topic, summed over partitions.
type point struct {
	at         time.Time
	partitions []partitionTotals

	total, delayed, unacked, inReplay, bytes int64
	// throttled counts how often a rate limit delayed dispatch since the subscription is tracked.
	throttled int64
	// countsUnacked is false for Exclusive and Failover: Pulsar does not count their unacked messages.
	countsUnacked               bool
	hasBytes, blocked, draining bool
	// incomplete is true if partitions are missing in the sums.
	incomplete bool
	// delaysUnknown is true if no consumer is connected, so that delayed does not include all delayed messages.
	delaysUnknown bool
	// otherType is a type that some partitions have instead of subType; empty if all agree.
	subType, otherType SubscriptionType
	// meanBatch converts backlog entries to messages; below 1 for transactions.
	meanBatch float64
}

// totalMessages is the backlog in messages. Entries are whole batches, so the product is an estimate; with a mean
// batch of 1 it is exact.
func (p point) totalMessages() float64 { return float64(p.total) * p.meanBatch }

// ready excludes delayed messages. Pulsar counts those in messages and the backlog in entries, so the error of the mean
// batch can make the difference negative, which counts as 0.
func (p point) ready() float64 { return readyMessages(p.total, p.delayed, p.meanBatch) }

func readyMessages(entries, delayed int64, meanBatch float64) float64 {
	return max(0, float64(entries)*meanBatch-float64(delayed))
}

// undispatched excludes messages that consumers hold.
func (p point) undispatched() float64 { return max(0, p.ready()-float64(p.unacked)) }

// history is the recent answers about one subscription of one topic, oldest first.
type history struct{ points []point }

// add appends a point and drops the points that the window no longer needs: all before the newest one that is at least
// as old as the window.
func (h *history) add(p point, window time.Duration) {
	h.points = append(h.points, p)
	h.points = dropBefore(h.points, p.at.Add(-window), func(q point) time.Time { return q.at })
}

// dropBefore keeps the last element at or before the bound and everything after it. It moves elements to the front
// rather than slicing them off, so that the array is reused and does not grow.
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

// flow is a running total that survives counter resets: messages counted over observed time. A pair of answers with a
// reset between them adds to neither, so a partition that was loaded again does not reduce a rate over a window.
type flow struct {
	messages int64
	observed time.Duration
}

func (f *flow) add(messages int64, over time.Duration) {
	f.messages += messages
	f.observed += over
}

// rate is the flow since the first one, in messages per second, or otherwise if there is no valid pair of answers in
// between.
func (f flow) rate(first flow, otherwise Measurement) Measurement {
	observed := f.observed - first.observed
	if observed <= 0 {
		return otherwise
	}
	return Known(float64(f.messages-first.messages) / observed.Seconds())
}

// pair is the last two answers about a partition, which a rate is computed from.
type pair struct {
	kind pairKind
	// over is the time between the answers of a valid pair, and published the messages published meanwhile: a lower bound
	// for a lost pair, since it was loaded.
	over      time.Duration
	published int64
}

type pairKind uint8

const (
	// noPair: it is the first answer about the partition.
	noPair pairKind = iota
	// soundPair: the counters grew between the answers, or the partition was created between them.
	soundPair
	// lostPair: the partition was loaded again between the answers, which restarts its counters at 0.
	lostPair
	// absentPair: the last answer lacks the partition.
	absentPair
)

// rate is the rate of a partition while the window has no valid pair: after it was loaded again it keeps the one before
// for one answer. At most the messages counted since it was created or loaded arrived within the window, so a partition
// without messages is quiet, and for a new one with few messages the bound is close to a measured rate.
func (p pair) rate(messages int64, before Measurement, window time.Duration) Measurement {
	switch {
	case p.kind == absentPair:
		return Unknown(ErrNoRate)
	case p.kind == lostPair && before.known:
		return before
	case messages == 0:
		return Known(0)
	case p.kind == lostPair:
		return Unknown(ErrNoRate)
	default:
		return between(0, float64(messages)/window.Seconds(), ErrNoRate)
	}
}

// place returns the partitions of an answer by position: the known ones, possibly with more after them. A partition
// that an incomplete answer lacks is nil. The positions change if a complete answer lacks a known partition, or if one
// is between the known ones: it was missing at the first answer.
func (p *topicPartitions) place(sample TopicSample) (answer []*PartitionSample, lacks, between bool) {
	there := byIndex(sample.Partitions)
	answer = make([]*PartitionSample, 0, max(len(there), len(p.indices)))
	left := there
	for _, index := range p.indices {
		for len(left) > 0 && left[0].Index < index {
			left, between = left[1:], true
		}
		switch {
		case len(left) > 0 && left[0].Index == index:
			answer, left = append(answer, left[0]), left[1:]
		case sample.Incomplete != nil:
			answer = append(answer, nil)
		default:
			return there, true, between
		}
	}
	if between {
		return there, false, true
	}
	return append(answer, left...), false, false
}

// hasNewMessages reports whether something was published since the last answer, or this is unknown.
func (p *topicPartitions) hasNewMessages(answer []*PartitionSample) bool {
	if p.at.IsZero() || len(answer) != len(p.last) || slices.Contains(answer, nil) {
		return true
	}
	for i, partition := range answer {
		if partition.PublishedMessages != p.last[i].messages {
			return true
		}
	}
	return false
}

// pairs returns the pairs of an answer with the last one.
func (p *topicPartitions) pairs(at time.Time, answer []*PartitionSample, loaded []bool) []pair {
	pairs := make([]pair, len(answer))
	for i, partition := range answer {
		switch {
		case partition == nil:
			pairs[i].kind = absentPair
		case p.at.IsZero(), i >= len(p.last) && (p.incomplete || loaded[i]): // it may have been there before
		case i >= len(p.last):
			pairs[i] = pair{kind: soundPair, over: at.Sub(p.at), published: partition.PublishedMessages}
		case loaded[i]:
			pairs[i] = pair{kind: lostPair, published: partition.PublishedMessages}
		default:
			pairs[i] = pair{
				kind: soundPair, over: at.Sub(p.last[i].at), published: partition.PublishedMessages - p.last[i].messages,
			}
		}
	}
	return pairs
}

// rate is the arrival rate on all partitions between two points; a lower bound if it is unknown for some.
func (p *topicPartitions) rate(first, last []flow) (sum Measurement) {
	for i, f := range last {
		rate := f.rate(earlier(first, i), p.otherwise(i))
		if i > 0 {
			rate = sum.plus(rate)
		}
		sum = rate
	}
	return sum
}

// byIndex returns the partitions by position.
func byIndex(partitions []PartitionSample) []*PartitionSample {
	ordered := make([]*PartitionSample, len(partitions))
	for i := range partitions {
		ordered[i] = &partitions[i]
	}
	slices.SortFunc(ordered, func(a, b *PartitionSample) int { return cmp.Compare(a.Index, b.Index) })
	return ordered
}

// onPartitions returns the subscription by position; nil where a partition does not have it, or is missing.
func onPartitions(name string, answer []*PartitionSample) []*SubscriptionSample {
	found := make([]*SubscriptionSample, len(answer))
	for i, partition := range answer {
		if partition == nil {
			continue
		}
		for j := range partition.Subscriptions {
			if partition.Subscriptions[j].Name == name {
				found[i] = &partition.Subscriptions[j]
				break
			}
		}
	}
	return found
}
