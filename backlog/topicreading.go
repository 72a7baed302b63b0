// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// errBytesMissing: Bytes were requested and are unknown.
var errBytesMissing = fmt.Errorf("%w: the last answer came without bytes", ErrNoData)

// read returns the reading of one subscription of the topic, which has an answer.
func (t *topicState) read(s *subscriptionState, now time.Time) Reading {
	first, last := s.history.points[0], s.history.last()
	r := Reading{
		At: last.at, Type: last.subType, OtherType: last.otherType, Window: last.at.Sub(first.at),
		Total: Known(last.totalMessages()), Ready: Known(last.ready()), Delayed: last.readDelayed(),
		InReplay: Known(float64(last.inReplay) * last.meanBatch), Bytes: s.readBytes(last),
		PublishRate: t.publishRate(s),
		Blocked:     last.blocked, Throttled: last.throttled > first.throttled, Draining: last.draining,
		Partitions:  len(t.partitions.indices),
		Trouble:     cmp.Or(t.failure, t.incomplete),
		ExactAt:     s.exactAt,
		Unconfirmed: s.unconfirmed,
		GrowthRate:  last.growthSince(first),
	}
	r.LatestPublishRate, r.LatestWindow = t.partitions.latestRate()
	r.DeliveryRate, r.ProcessRate = s.partitions.rates(first.partitions, t.partitions.window)
	r.OldestAge, r.OldestAt = s.age.read(now, last.at)
	s.readLeast(&r)
	r.consumers = s.consumers
	r.SteadyConsumers = s.consumers.steady(first.at) && t.slow.timeouts == 0 // else more may have joined unseen
	if t.pace.Wakes() {
		r.PushRefused = t.pushRefused
	}
	if t.uncounted != nil {
		r = r.withoutCounters(t.uncounted)
	}
	return r
}

// withoutCounters is a reading of a topic of which Pulsar reports only the backlog.
func (r Reading) withoutCounters(reason error) Reading {
	unknown := Unknown(reason)
	r.PublishRate, r.LatestPublishRate, r.DeliveryRate, r.ProcessRate = unknown, unknown, unknown, unknown
	r.Delayed, r.InReplay, r.Unacked, r.Redelivered = unknown, unknown, unknown, unknown
	r.Undispatched, r.LeastUndispatched = unknown, unknown
	return r
}

// growthSince is the growth of the backlog by the current mean batch: a change of the mean is no growth.
func (p point) growthSince(first point) Measurement {
	if !p.at.After(first.at) || p.incomplete || first.incomplete {
		return Unknown(ErrNoRate)
	}
	return Known(float64(p.total-first.total) * p.meanBatch / p.at.Sub(first.at).Seconds())
}

// readLeast sets the values that depend on the count of unacknowledged messages, and the minima of the window.
func (s *subscriptionState) readLeast(r *Reading) {
	last := s.history.last()
	leastReady, leastUndispatched := last.ready(), last.undispatched()
	for _, p := range s.history.points {
		leastReady = min(leastReady, p.ready())
		leastUndispatched = min(leastUndispatched, p.undispatched())
	}
	r.LeastReady = Known(leastReady)
	if !last.countsUnacked {
		unknown := Unknown(errUnackedNotCounted)
		r.Unacked, r.Undispatched, r.LeastUndispatched, r.Redelivered = unknown, unknown, unknown, unknown
		return
	}
	r.Redelivered = Known(s.partitions.redelivered)
	if !s.consumers.known || s.consumers.most > 0 {
		r.Redelivered = Unknown(errNotToldApart)
	}
	r.Unacked = Known(float64(last.unacked))
	r.Undispatched = Known(last.undispatched())
	r.LeastUndispatched = Known(leastUndispatched)
}

func (p point) readDelayed() Measurement {
	if p.delaysUnknown {
		return Unknown(errDelaysUnknown)
	}
	return Known(float64(p.delayed))
}

func (s *subscriptionState) readBytes(last point) Measurement {
	switch {
	case last.hasBytes:
		return Known(float64(max(0, last.bytes)))
	case s.bytes:
		return Unknown(errBytesMissing)
	default:
		return Unknown(ErrNotRequested)
	}
}

// publishRate is the arrival rate on all partitions over the window of the subscription. For a new subscription it is
// that of the topic.
func (t *topicState) publishRate(s *subscriptionState) Measurement {
	return t.partitions.rate(t.partitions.over(s.history))
}

// over returns the flows of the partitions at both ends of the window. Each point of the history has one of theirs.
func (p *topicPartitions) over(h history) (first, last []flow) {
	i := 0
	if len(h.points) > 1 {
		i = slices.IndexFunc(p.points, func(q publishedPoint) bool { return !q.at.Before(h.points[0].at) })
	}
	return p.points[i].flows, p.points[len(p.points)-1].flows
}

// rates are the rates of delivered and finished messages on all partitions with the subscription.
func (s *subscriptionPartitions) rates(first []partitionTotals, window time.Duration) (delivered,
	finished Measurement,
) {
	delivered, finished = Unknown(ErrNoRate), Unknown(ErrNoRate)
	some := false
	for i, total := range s.totals {
		if !s.last[i].present {
			continue
		}
		since, last := earlier(first, i), s.last[i]
		one := total.delivered.rate(since.delivered, last.pair.rate(last.delivered, last.lastDeliveryRate, window))
		// Each finished message was delivered.
		another := total.finished.rate(since.finished, last.pair.rate(last.delivered, last.lastFinishRate, window))
		if some {
			one, another = delivered.plus(one), finished.plus(another)
		}
		delivered, finished, some = one, another, true
	}
	return delivered.notNegative(), finished.notNegative()
}

// notNegative is a rate unless it is negative, which deliveries that were taken back cause.
func (m Measurement) notNegative() Measurement {
	if m.known && m.value < 0 {
		return Unknown(ErrNoRate)
	}
	return m
}

// Partitions returns the state of each partition of the topics that a reading of the subscription sums up, topic by
// topic in the order of their indices. It fails when Read does.
func (s *Store) Partitions(subscription Subscription, now time.Time) ([]PartitionReading, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var readings []PartitionReading
	_, err := s.inputs(subscription, now, func(one input) {
		readings = one.topic.appendPartitions(readings, one.name, one.state)
	})
	if err != nil {
		return nil, err
	}
	return readings, nil
}

// appendPartitions adds the partitions of a topic that has an answer and the subscription.
func (t *topicState) appendPartitions(readings []PartitionReading, topic string,
	s *subscriptionState,
) []PartitionReading {
	start, end := s.history.points[0], s.history.last()
	published, now := t.partitions.over(s.history)
	window := t.partitions.window
	readings = slices.Grow(readings, len(t.partitions.indices))
	for i, index := range t.partitions.indices {
		r := PartitionReading{
			Topic: topic, Index: index,
			PublishRate: now[i].rate(earlier(published, i), t.partitions.otherwise(i)),
		}
		last := earlier(s.partitions.last, i)
		switch {
		case t.partitions.last[i].pair.kind == absentPair:
			missing := Unknown(t.incomplete)
			r.PublishRate, r.Ready, r.ProcessRate, r.Consumers = missing, missing, missing, missing
		case last.present:
			r.Ready = Known(readyMessages(last.backlogEntries, last.delayed, end.meanBatch))
			r.ProcessRate = end.partitions[i].finished.rate(earlier(start.partitions, i).finished,
				last.pair.rate(last.delivered, last.lastFinishRate, window)).notNegative()
			r.Consumers = Unknown(ErrNotRequested)
			if last.consumers >= 0 {
				r.Consumers = Known(float64(last.consumers))
			}
		default:
			missing := Unknown(ErrSubscriptionNotFound)
			r.Ready, r.ProcessRate, r.Consumers = missing, missing, missing
		}
		if t.uncounted != nil {
			r.PublishRate, r.ProcessRate = Unknown(t.uncounted), Unknown(t.uncounted)
		}
		readings = append(readings, r)
	}
	return readings
}

// earlier is the total of a partition at an earlier answer: zero if it did not exist yet.
func earlier[T any](totals []T, position int) T {
	if position < len(totals) {
		return totals[position]
	}
	var none T
	return none
}
