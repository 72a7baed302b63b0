// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	"time"
)

// errBytesMissing is why Bytes is unknown though they were asked for.
var errBytesMissing = fmt.Errorf("%w: the last answer came without bytes", ErrNoData)

// read sums up what is known of one subscription of the topic, which has been answered.
func (t *topicState) read(s *subscriptionState, now time.Time) Reading {
	first, last := s.history.points[0], s.history.last()
	r := Reading{
		At: last.at, Type: last.subType, OtherType: last.otherType, Window: last.at.Sub(first.at),
		Total: Known(last.totalMessages()), Ready: Known(last.ready()), Delayed: last.readDelayed(),
		InReplay: Known(float64(last.inReplay) * last.meanBatch), Bytes: s.readBytes(last),
		PublishRate: publishRate(t.partitions.since(first.at)),
		Blocked:     last.blocked, Throttled: last.throttled > first.throttled, Draining: last.draining,
		Partitions: len(t.partitions.indices),
		Instances:  noInstances(ErrNotAsked),
		Trouble:    t.trouble,
		ExactAt:    s.exactAt,
	}
	r.LatestPublishRate, r.LatestWindow = t.partitions.latestRate()
	r.DeliveryRate, r.ProcessRate = s.partitions.rates(first.partitions)
	r.OldestAge, r.OldestAt = s.age.read(now, last.at)
	s.readLeast(&r)
	r.consumers = s.consumers
	r.countConsumers()
	r.SteadyConsumers = s.history.steadyConsumers(first.at)
	return r
}

// readLeast fills in what depends on Pulsar counting unacknowledged messages, and the least values of the window.
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
		r.Unacked, r.Undispatched, r.LeastUndispatched = unknown, unknown, unknown
		return
	}
	r.Unacked = Known(float64(last.unacked))
	r.Undispatched = Known(last.undispatched())
	r.LeastUndispatched = Known(leastUndispatched)
}

func (p point) readDelayed() Measurement {
	if p.delaysUntold {
		return Unknown(errDelaysUntold)
	}
	return Known(float64(p.delayed))
}

func (s *subscriptionState) readBytes(last point) Measurement {
	switch {
	case last.hasBytes:
		return Known(float64(max(0, last.bytes)))
	case s.bytes > 0:
		return Unknown(errBytesMissing)
	default:
		return Unknown(ErrNotAsked)
	}
}

// publishRate is what arrives on all partitions; unknown when it is of one.
func publishRate(first, last []flow) Measurement {
	var sum float64
	for i, f := range last {
		rate, known := f.rate(earlier(first, i))
		if !known {
			return Unknown(ErrNoRate)
		}
		sum += rate
	}
	return Known(sum)
}

// rates are what is delivered from and finished on all partitions that have the subscription.
func (s *subscriptionPartitions) rates(first []partitionTotals) (delivered, finished Measurement) {
	var deliveredSum, finishedSum float64
	deliveredKnown, finishedKnown := true, true
	for i, total := range s.totals {
		if !s.last[i].present {
			continue
		}
		since := earlier(first, i)
		rate, known := total.delivered.rate(since.delivered)
		deliveredSum, deliveredKnown = deliveredSum+rate, deliveredKnown && known
		rate, known = total.finished.rate(since.finished)
		finishedSum, finishedKnown = finishedSum+rate, finishedKnown && known
	}
	return rateOf(deliveredSum, deliveredKnown), rateOf(finishedSum, finishedKnown)
}

// rateOf is a rate unless it is unknown; one below 0 comes from deliveries that were taken back.
func rateOf(perSecond float64, known bool) Measurement {
	if !known || perSecond < 0 {
		return Unknown(ErrNoRate)
	}
	return Known(perSecond)
}
