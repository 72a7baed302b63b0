// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"slices"
	"time"
)

// topicPartitions are the partitions of a topic and the messages published to each. All data about partitions is kept
// by position: partitions in the order of their indices, which Pulsar only appends to.
type topicPartitions struct {
	at      time.Time // last answer
	indices []int
	last    []publishedCounter
	points  []publishedPoint
	window  time.Duration // that rates are measured over
	// most is the largest number of partitions seen: a partition that returns after it was missing has an old counter.
	most int
	// incomplete is true if partitions were missing in the last answer.
	incomplete bool
}

// publishedCounter is Pulsar's counter of a partition at the last answer that had it.
type publishedCounter struct {
	at              time.Time
	messages, bytes int64
	pair            pair
	lastRate        Measurement // before the pair was lost
}

// publishedPoint has the flows of all partitions at one answer. It is immutable.
type publishedPoint struct {
	at    time.Time
	flows []flow
}

// record counts the messages published since the last answer, and returns the pairs of the two answers. A partition
// that is not in the last answer was added since: its counter started at 0.
func (p *topicPartitions) record(sample TopicSample, answer []*PartitionSample, loaded []bool,
	window time.Duration,
) []pair {
	at := sample.At
	flows := make([]flow, len(answer))
	var first []flow
	if len(p.points) > 0 {
		first = p.points[0].flows
		copy(flows, p.points[len(p.points)-1].flows)
	}
	pairs := make([]pair, len(answer))
	if sample.Uncounted == nil {
		pairs = p.pairs(at, answer, loaded)
	}
	last := make([]publishedCounter, len(answer))
	p.indices = slices.Grow(p.indices, len(answer))[:len(answer)]
	for i, partition := range answer {
		var before publishedCounter
		if i < len(p.last) {
			before = p.last[i]
		}
		if partition == nil {
			last[i] = before
			last[i].pair = pairs[i]
			continue
		}
		p.indices[i] = partition.Index
		last[i] = publishedCounter{
			at: at, messages: partition.PublishedMessages, bytes: partition.PublishedBytes, pair: pairs[i],
		}
		switch pairs[i].kind {
		case soundPair:
			flows[i].add(pairs[i].published, pairs[i].over)
		case lostPair:
			last[i].lastRate = flows[i].rate(earlier(first, i), Unknown(ErrNoRate))
		case noPair, absentPair:
		}
	}
	p.at, p.last, p.window, p.incomplete = at, last, window, sample.Incomplete != nil
	p.most = max(p.most, len(answer))
	p.points = append(p.points, publishedPoint{at: at, flows: flows})
	p.points = dropBefore(p.points, at.Add(-window), func(q publishedPoint) time.Time { return q.at })
	return pairs
}

// otherwise is the arrival rate of a partition without a valid pair in the window.
func (p *topicPartitions) otherwise(i int) Measurement {
	last := p.last[i]
	return last.pair.rate(last.messages, last.lastRate, p.window)
}

// published returns the messages and bytes on all partitions since the last answer; negative if some were loaded again.
func (p *topicPartitions) published(sample TopicSample) (messages, bytes int64) {
	for _, one := range sample.Partitions {
		messages, bytes = messages+one.PublishedMessages, bytes+one.PublishedBytes
	}
	for _, before := range p.last {
		messages, bytes = messages-before.messages, bytes-before.bytes
	}
	return messages, bytes
}

// hasMessages reports whether anything was published since the topic was loaded.
func (p *topicPartitions) hasMessages() bool {
	return slices.ContainsFunc(p.last, func(one publishedCounter) bool { return one.messages > 0 })
}

// latestSpan is the minimum time between two answers that a rate is measured over: the time of an answer is exact to a
// fraction of a second.
const latestSpan = 2 * time.Second

// latestGap is the maximum interval between answers in latest spans. After an outage producers send their accumulated
// messages at once: over the newest answers alone that looks like a load step.
const latestGap = 3

// latestRate is the arrival rate over the newest answers that are a latestSpan apart, and the time between them.
func (p *topicPartitions) latestRate() (Measurement, time.Duration) {
	newest := len(p.points) - 1
	if newest == 0 {
		return p.rate(p.points[0].flows, p.points[0].flows), 0
	}
	for i := newest - 1; i >= 0; i-- {
		span := p.points[newest].at.Sub(p.points[i].at)
		if span < latestSpan && i > 0 {
			continue
		}
		if p.longestInterval() > latestGap*span {
			break
		}
		return p.rate(p.points[i].flows, p.points[newest].flows), span
	}
	return Unknown(ErrNoRate), 0
}

func (p *topicPartitions) longestInterval() (longest time.Duration) {
	for i := 1; i < len(p.points); i++ {
		longest = max(longest, p.points[i].at.Sub(p.points[i-1].at))
	}
	return longest
}

// subscriptionPartitions are a subscription on the partitions of a topic, by position.
type subscriptionPartitions struct {
	last      []partitionCounters // nil before the first answer
	totals    []partitionTotals   // never written again: points hold it
	throttled int64               // events since it is tracked
	// redelivered messages of consumers that left, since it is tracked.
	redelivered float64
}

// partitionCounters are Pulsar's numbers about a subscription on a partition at the last answer that had it.
type partitionCounters struct {
	present        bool
	backlogEntries int64
	// unread is true if the broker does not read on behind delayed messages.
	unread bool
	// delayed messages; 0 without a consumer. Then unknownDelay is true if some of the backlog may be delayed.
	delayed                       int64
	unknownDelay                  bool
	delivered, unacked, throttled int64
	// consumers at the last full answer that had the subscription; -1 before the first.
	consumers int
	// pair of the last answer, and the rates before the pair was lost.
	pair                             pair
	lastDeliveryRate, lastFinishRate Measurement
}

// partitionTotals are the delivered and the finished messages: deliveries less the growth of what consumers hold.
type partitionTotals struct {
	delivered, finished flow
}

// record counts the changes since the last answer, and reports whether anything was delivered as far as is known; first
// are the totals at the start of the window.
//
// When consumers left, their messages return to the backlog, which looks like finished work: such a pair only counts
// for the deliveries.
func (s *subscriptionPartitions) record(answer []*SubscriptionSample, pairs []pair, left bool,
	first []partitionTotals, meanBatch float64,
) (moved bool) {
	totals := make([]partitionTotals, len(answer))
	copy(totals, s.totals)
	last := make([]partitionCounters, len(answer))
	for i, now := range answer {
		before := partitionCounters{consumers: -1}
		if i < len(s.last) {
			before = s.last[i]
		}
		last[i] = before
		last[i].pair = pairs[i]
		switch {
		case pairs[i].kind == absentPair:
			moved = true
			continue
		case now == nil:
			last[i] = partitionCounters{consumers: -1}
			continue
		}
		last[i].copyFrom(now)
		switch {
		case s.last == nil, pairs[i].kind == noPair:
			moved, last[i].pair = true, pair{}
			continue
		case pairs[i].kind == lostPair:
			moved = true
			s.throttled += before.throttledUntil(now)
			since, unknown := earlier(first, i), Unknown(ErrNoRate)
			last[i].lastDeliveryRate = totals[i].delivered.rate(since.delivered, unknown)
			last[i].lastFinishRate = totals[i].finished.rate(since.finished, unknown)
			continue
		case !before.present:
			before = partitionCounters{} // created since: its counters started at 0
		}
		delivered := now.DeliveredMessages - before.delivered
		moved = moved || delivered > 0
		s.throttled += now.ThrottledEvents - before.throttled
		totals[i].delivered.add(delivered, pairs[i].over)
		if !left || before.unacked == 0 {
			totals[i].finished.add(delivered-(now.UnackedMessages-before.unacked), pairs[i].over)
		}
		if left && now.MoreConsumers == 0 { // the broker's sum may include their messages a moment longer
			last[i].unacked = min(last[i].unacked, heldBy(now.Consumers))
			s.redelivered += before.redelivered(last[i], pairs[i].published, meanBatch)
		}
	}
	s.last, s.totals = last, totals
	return moved
}

// throttledUntil is a lower bound of the throttle events up to an answer before which the partition was loaded again. A
// partition that returns is not throttled by that.
func (c partitionCounters) throttledUntil(now *SubscriptionSample) int64 {
	switch {
	case !c.present:
		return 0
	case now.ThrottledEvents < c.throttled:
		return now.ThrottledEvents
	default:
		return now.ThrottledEvents - c.throttled
	}
}

func (c *partitionCounters) copyFrom(now *SubscriptionSample) {
	c.present, c.unknownDelay = true, false
	c.backlogEntries, c.delayed = now.BacklogEntries, now.DelayedMessages
	if c.unread = now.stopsReading(*c); c.unread {
		c.delayed = max(c.delayed, now.BacklogEntries-now.UnackedMessages-now.InReplayEntries)
	}
	c.delivered, c.unacked, c.throttled = now.DeliveredMessages, now.UnackedMessages, now.ThrottledEvents
}

// recordConsumers records the number of consumers from a full answer. Without a consumer, Pulsar still reports the
// number of messages that were delayed when the last consumer left, although they become due. A policy that waited for
// this number to fall before it starts a replica would wait forever. Therefore messages that may be due count as ready.
func (s *subscriptionPartitions) recordConsumers(answer []*SubscriptionSample) {
	for i, now := range answer {
		if now == nil {
			continue
		}
		last := &s.last[i]
		last.consumers = now.consumerCount()
		if last.consumers == 0 {
			last.delayed, last.unknownDelay = 0, now.BacklogEntries > 0
		}
	}
}

// delays are the delayed messages of the partitions in the answer, and whether there may be others.
func (s *subscriptionPartitions) delays() (delayed int64, unknownDelay bool) {
	for _, last := range s.last {
		if last.present && last.pair.kind != absentPair {
			delayed, unknownDelay = delayed+last.delayed, unknownDelay || last.unknownDelay
		}
	}
	return delayed, unknownDelay
}

// turnover is the change of a backlog between two answers.
type turnover struct {
	// entries in the backlog now, and their growth.
	entries, grown int64
	// published and finished messages; negative if counters restarted.
	published, finished int64
}

// turnover returns the change since the last answer, except published messages.
func (s *subscriptionPartitions) turnover(answer []*SubscriptionSample) (since turnover) {
	for _, one := range answer {
		if one != nil {
			since.entries += one.BacklogEntries
			since.finished += one.DeliveredMessages - one.UnackedMessages
		}
	}
	since.grown = since.entries
	for _, before := range s.last {
		since.grown -= before.backlogEntries
		since.finished -= before.delivered - before.unacked
	}
	return since
}
