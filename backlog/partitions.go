// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"cmp"
	"slices"
	"time"
)

// flow is a running total that survives counter resets: messages counted over observed time. A pair of answers with a
// reset between them adds to neither, so a rate over a window is never too low because a partition was loaded again.
type flow struct {
	messages int64
	observed time.Duration
}

// add counts messages over a time.
func (f *flow) add(messages int64, over time.Duration) {
	f.messages += messages
	f.observed += over
}

// rate is the flow since the first one, in messages per second, unless no sound pair of answers lies between.
func (f flow) rate(first flow) Measurement {
	observed := f.observed - first.observed
	if observed <= 0 {
		return Unknown(ErrNoRate)
	}
	return Known(float64(f.messages-first.messages) / observed.Seconds())
}

// topicPartitions are the partitions of a topic and what was published to each. Everything about partitions is kept by
// position: partitions in the order of their indices, of which Pulsar only ever adds some at the end.
type topicPartitions struct {
	at        time.Time // last answer
	indices   []int
	published []int64 // Pulsar's counters at the last answer
	bytes     int64   // the sum of Pulsar's counters of published bytes
	points    []publishedPoint
	// most is how many there ever were: one that is back after it was missing has counted for long.
	most int
}

// publishedPoint holds the flows of all partitions at one answer. It is never written again.
type publishedPoint struct {
	at    time.Time
	flows []flow
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

// onPartitions returns the subscription by position; nil where a partition does not have it.
func onPartitions(name string, answer []*PartitionSample) []*SubscriptionSample {
	found := make([]*SubscriptionSample, len(answer))
	for i, partition := range answer {
		for j := range partition.Subscriptions {
			if partition.Subscriptions[j].Name == name {
				found[i] = &partition.Subscriptions[j]
				break
			}
		}
	}
	return found
}

// hasSamePartitions says whether the answer has the same partitions, and perhaps more.
func (p *topicPartitions) hasSamePartitions(answer []*PartitionSample) bool {
	if len(answer) < len(p.indices) {
		return false
	}
	for i, index := range p.indices {
		if answer[i].Index != index {
			return false
		}
	}
	return true
}

// hasNewMessages says that something was published since the last answer, or that this is unknown.
func (p *topicPartitions) hasNewMessages(answer []*PartitionSample) bool {
	if p.at.IsZero() || len(answer) != len(p.published) {
		return true
	}
	for i, partition := range answer {
		if partition.PublishedMessages != p.published[i] {
			return true
		}
	}
	return false
}

// record counts what was published since the last answer and returns the time since; 0 after the first. A partition
// that was loaded again, or is back, adds nothing for this pair. One that no answer had was added since: its counter
// began at 0.
func (p *topicPartitions) record(at time.Time, answer []*PartitionSample, loaded []bool,
	window time.Duration,
) time.Duration {
	flows := make([]flow, len(answer))
	if len(p.points) > 0 {
		copy(flows, p.points[len(p.points)-1].flows)
	}
	var interval time.Duration
	if !p.at.IsZero() {
		interval = at.Sub(p.at)
		for i, partition := range answer {
			switch {
			case loaded[i]:
			case i >= len(p.published):
				flows[i].add(partition.PublishedMessages, interval)
			default:
				flows[i].add(partition.PublishedMessages-p.published[i], interval)
			}
		}
	}
	p.indices, p.published, p.bytes = p.indices[:0], p.published[:0], 0
	for _, partition := range answer {
		p.bytes += partition.PublishedBytes
		p.indices = append(p.indices, partition.Index)
		p.published = append(p.published, partition.PublishedMessages)
	}
	p.at, p.most = at, max(p.most, len(answer))
	p.points = append(p.points, publishedPoint{at: at, flows: flows})
	p.points = dropBefore(p.points, at.Add(-window), func(q publishedPoint) time.Time { return q.at })
	return interval
}

// since returns the flows at a time, or at the first point after it, and at the last answer.
func (p *topicPartitions) since(at time.Time) (first, last []flow) {
	for _, q := range p.points {
		if !q.at.Before(at) {
			return q.flows, p.points[len(p.points)-1].flows
		}
	}
	return nil, nil
}

// latestSpan is the shortest time between two answers that a rate is measured over: the time of an answer is known to a
// fraction of a second.
const latestSpan = 2 * time.Second

// latestGap is how many times longer than the latest span an interval between answers may be. After an outage producers
// send at once what they could not send during it: over the newest answers alone that looks like a load step.
const latestGap = 3

// latestRate is what arrives by the newest answers that are a latestSpan apart, and the time between them.
func (p *topicPartitions) latestRate() (Measurement, time.Duration) {
	newest := len(p.points) - 1
	for i := newest - 1; i >= 0; i-- {
		span := p.points[newest].at.Sub(p.points[i].at)
		if span < latestSpan && i > 0 {
			continue
		}
		if p.longestInterval() > latestGap*span {
			break
		}
		return publishRate(p.points[i].flows, p.points[newest].flows), span
	}
	return Unknown(ErrNoRate), 0
}

// longestInterval is the longest time between two answers in a row.
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
}

// partitionCounters are Pulsar's own numbers about a subscription on a partition at the last answer.
type partitionCounters struct {
	present        bool
	backlogEntries int64
	// delayed messages; none without a consumer, and then unknownDelay says that some of the backlog may be.
	delayed                       int64
	unknownDelay                  bool
	delivered, unacked, throttled int64
	// consumers at the last full answer that had the subscription; -1 before the first.
	consumers int
}

// partitionTotals are what was delivered and what was finished: deliveries less the growth of what consumers hold.
type partitionTotals struct {
	delivered, finished flow
}

// record counts what happened since the last answer, and says whether anything was delivered as far as can be known.
//
// When consumers left, their messages are in the backlog again, which looks like finished work: such a pair counts for
// the deliveries alone.
func (s *subscriptionPartitions) record(answer []*SubscriptionSample, loaded []bool, left bool,
	interval time.Duration,
) (moved bool) {
	totals := make([]partitionTotals, len(answer))
	copy(totals, s.totals)
	last := make([]partitionCounters, len(answer))
	for i, now := range answer {
		before := partitionCounters{consumers: -1}
		if i < len(s.last) {
			before = s.last[i]
		}
		if now == nil {
			last[i].consumers = -1
			continue
		}
		last[i].consumers = before.consumers
		last[i].copyFrom(now)
		switch {
		case s.last == nil:
			moved = true
			continue
		case loaded[i]:
			moved = true
			switch {
			case !before.present: // one that is back is not throttled for that
			case now.ThrottledEvents < before.throttled:
				s.throttled += now.ThrottledEvents
			default:
				s.throttled += now.ThrottledEvents - before.throttled
			}
			continue
		case !before.present:
			before = partitionCounters{} // made since: its counters began at 0
		}
		delivered := now.DeliveredMessages - before.delivered
		moved = moved || delivered > 0
		s.throttled += now.ThrottledEvents - before.throttled
		totals[i].delivered.add(delivered, interval)
		if !left || before.unacked == 0 {
			totals[i].finished.add(delivered-(now.UnackedMessages-before.unacked), interval)
		}
		if left && now.MoreConsumers == 0 { // the broker's sum may have what they held a moment longer
			last[i].unacked = min(last[i].unacked, heldBy(now.Consumers))
		}
	}
	s.last, s.totals = last, totals
	return moved
}

// heldBy is how many messages the consumers hold in sum.
func heldBy(consumers []ConsumerSample) (messages int64) {
	for _, consumer := range consumers {
		messages += consumer.UnackedMessages
	}
	return messages
}

// copyFrom copies the numbers that every answer has.
func (c *partitionCounters) copyFrom(now *SubscriptionSample) {
	c.present, c.unknownDelay = true, false
	c.backlogEntries, c.delayed = now.BacklogEntries, now.DelayedMessages
	c.delivered, c.unacked, c.throttled = now.DeliveredMessages, now.UnackedMessages, now.ThrottledEvents
}

// recordConsumers takes over how many are connected from a full answer. While none is, Pulsar goes on to show how many
// messages were delayed when the last consumer left, though they fall due one after the other: a reader that waited for
// the number to fall before he starts a replica would wait for ever. What may be due is ready.
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

// delays are the delayed messages of all partitions, and whether there may be others that are unknown.
func (s *subscriptionPartitions) delays() (delayed int64, unknownDelay bool) {
	for _, last := range s.last {
		if last.present {
			delayed, unknownDelay = delayed+last.delayed, unknownDelay || last.unknownDelay
		}
	}
	return delayed, unknownDelay
}
