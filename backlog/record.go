// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// topicState is one tracked topic. A subscription stays in it while an owner needs it.
type topicState struct {
	batches    batches
	partitions topicPartitions
	accepted   acceptedChanges
	// shrunkAt is when fewer partitions were first seen since the last good answer; zero for never.
	shrunkAt      time.Time
	subscriptions map[string]*subscriptionState
	pace          Pace // of the owner that needs it most often

	answeredAt     time.Time // last good answer; zero before the first
	fullAt         time.Time // last one with consumers
	ageRequestedAt time.Time // last request with the age
	failure        error     // why the last fetch failed; nil after a good one
	incomplete     error     // why the last good answer lacks partitions; nil when it has all
	uncounted      error     // why the last good answer has no counters; nil when it has them
	pushRefused    error     // why brokers do not report messages; nil when they do, or nothing is known
	// others are known while a subscription is missing.
	others OtherSubscriptions
	// relistRequested is true if a listing was requested since the topic was found missing.
	relistRequested bool
	slow            slowAnswers
	exact           exactCounts
}

type subscriptionState struct {
	interests  interests
	bytes      bool // an owner requests the backlog in bytes
	partitions subscriptionPartitions
	consumers  consumers
	age        age
	history    history
	missing    bool // the last good answer did not have it
	// missingSince is the first answer since which it is missing.
	missingSince time.Time
	stuck        bool // nothing was delivered between the last two answers
	// precise is true if the last answer counted exactly, for a comparison or because the quick count was implausible,
	// also if it lacked partitions.
	precise bool
	// exactAt is the last exact count since anything was published and the backlog was another one; zero for none.
	exactAt time.Time
	// unconfirmed is the backlog in entries of a newer, implausible answer, or that of a pushed message; 0 for none.
	unconfirmed float64
}

// record converts an answer to points of the tracked subscriptions.
func (t *topicState) record(sample TopicSample, window time.Duration) {
	if sample.Detail.Has(Age) || t.wantsAge(sample.At) {
		t.ageRequestedAt = sample.At // with or without an answer: it costs the broker a read
	}
	answer, loaded := t.accept(sample)
	moved, whole := t.partitions.hasNewMessages(answer), sample.Incomplete == nil
	if whole && sample.Detail.Has(Entries) {
		t.batches.record(sample, t.partitions.signs(sample))
	}
	t.batches.since = t.batches.publishedSince(sample)
	pairs := t.partitions.record(sample, answer, loaded, window)
	if sample.Detail.Has(Consumers) {
		t.batches.recordReported(sample)
		t.fullAt = sample.At
		t.slow = slowAnswers{}
	}
	forget := t.slow.timeouts > 0 && sample.At.Sub(t.fullAt) > 2*fullInterval
	for name, state := range t.subscriptions {
		if !sample.covers(name) {
			continue // tracked since: the request did not include it
		}
		on := onPartitions(name, answer)
		if !whole && isNowhere(on) {
			continue // a missing partition may have it
		}
		entries := backlogEntries(on)
		meanBatch := t.batches.mean(entries)
		state.recordExact(sample, entries, moved, sample.At.Before(t.exact.until))
		state.record(sample, on, pairs, meanBatch)
		if forget {
			state.forgetConsumers()
		}
		if state.missing {
			t.others = sample.Others
			continue
		}
		state.history.add(state.point(sample, on, meanBatch), window)
	}
	t.answeredAt, t.shrunkAt = sample.At, time.Time{}
	t.failure, t.incomplete, t.uncounted = nil, sample.Incomplete, sample.Uncounted
}

// accept returns the partitions of an accepted answer by position, and which were loaded again.
func (t *topicState) accept(sample TopicSample) (answer []*PartitionSample, loaded []bool) {
	since := t.changeTo(sample)
	jumps := t.accepted.jumps(since)
	t.accepted = t.accepted.after(since, sample.At)
	answer, loaded = since.answer, since.loaded
	if since.shrunk {
		t.reset() // the first answer lacked partitions, or the topic was recreated
		loaded, _ = t.reloaded(answer)
	}
	for i := range loaded {
		loaded[i] = loaded[i] || jumps
	}
	return answer, loaded
}

// reset clears the data of rates and least values after a time in which nothing was known: two answers around that time
// show neither that replicas were busy throughout, nor the current arrivals. The mean batch stays.
func (t *topicState) reset() {
	t.partitions = topicPartitions{most: t.partitions.most}
	for _, state := range t.subscriptions {
		state.partitions, state.history = subscriptionPartitions{}, history{}
	}
}

// reloaded returns the partitions that were loaded again since the last answer, which restarts their counters at 0, and
// the counter that fell. Any counter shows it, since a busy one may have passed its old value already. A partition that
// returns counts as loaded again: its messages in the gap do not belong to this pair.
func (t *topicState) reloaded(answer []*PartitionSample) (loaded []bool, fell string) {
	loaded = make([]bool, len(answer))
	for i := len(t.partitions.last); i < min(t.partitions.most, len(answer)); i++ {
		loaded[i] = true
	}
	compare := func(position int, counter string, before, now int64) {
		if now < before {
			loaded[position] = true
			fell = cmp.Or(fell, fmt.Sprintf("%s fell from %d to %d", counter, before, now))
		}
	}
	for i, last := range t.partitions.last {
		if answer[i] != nil {
			compare(i, "msgInCounter", last.messages, answer[i].PublishedMessages)
		}
	}
	for name, state := range t.subscriptions {
		now := onPartitions(name, answer)
		for i, before := range state.partitions.last {
			if before.present && now[i] != nil {
				compare(i, "msgOutCounter of "+name, before.delivered, now[i].DeliveredMessages)
				compare(i, "dispatchThrottled...EventsBy...Limit of "+name, before.throttled, now[i].ThrottledEvents)
			}
		}
	}
	return loaded, fell
}

// record records the subscription on each partition; nil where it does not exist.
func (s *subscriptionState) record(sample TopicSample, answer []*SubscriptionSample, pairs []pair, meanBatch float64) {
	missing, left := isNowhere(answer), false
	if missing && !s.missing {
		s.missingSince = sample.At
	}
	s.missing, s.unconfirmed = missing, 0
	if s.missing {
		// A subscription that is created again starts without data.
		s.history, s.consumers, s.age, s.exactAt = history{}, consumers{}, age{}, time.Time{}
	} else if sample.Detail.Has(Consumers) {
		left = s.consumers.observe(sample.At, answer, meanBatch)
	}
	var first []partitionTotals
	if len(s.history.points) > 0 {
		first = s.history.points[0].partitions
	}
	s.stuck = !s.partitions.record(answer, pairs, left, first, meanBatch)
	if sample.Detail.Has(Consumers) {
		s.partitions.recordConsumers(answer)
	}
	s.age.observe(sample, answer)
}

// recordExact records how the answer counted, and whether a quick count was contradicted lately. The history must not
// include the answer yet. A quick count of another backlog may have drifted, also if nothing was published.
func (s *subscriptionState) recordExact(sample TopicSample, entries int64, moved, contradicted bool) {
	moved = moved || len(s.history.points) > 0 && s.history.last().total != entries
	s.precise = sample.Detail.Has(Precise) && (s.precise || s.hasBacklog() || contradicted)
	switch {
	case sample.Detail.Has(Precise) && sample.Incomplete == nil:
		s.exactAt = sample.At
	case moved:
		s.exactAt = time.Time{}
	}
}

func isNowhere(answer []*SubscriptionSample) bool {
	return !slices.ContainsFunc(answer, func(one *SubscriptionSample) bool { return one != nil })
}

func backlogEntries(answer []*SubscriptionSample) (sum int64) {
	for _, one := range answer {
		if one != nil {
			sum += one.BacklogEntries
		}
	}
	return sum
}

func (s *subscriptionState) point(sample TopicSample, answer []*SubscriptionSample, meanBatch float64) point {
	p := point{
		at: sample.At, subType: NoType, countsUnacked: true, meanBatch: meanBatch, hasBytes: sample.Detail.Has(Bytes),
		partitions: s.partitions.totals, throttled: s.partitions.throttled, incomplete: sample.Incomplete != nil,
	}
	for _, subscription := range answer {
		if subscription == nil {
			continue
		}
		p.total += subscription.BacklogEntries
		p.unacked += subscription.UnackedMessages
		p.inReplay += subscription.InReplayEntries
		p.bytes += subscription.BacklogBytes
		p.blocked = p.blocked || subscription.Blocked
		p.draining = p.draining || subscription.DrainingHashes > 0
		one, another := p.subType.with(subscription.Type)
		p.subType, p.otherType = one, cmp.Or(p.otherType, another)
		p.countsUnacked = p.countsUnacked && subscription.Type != Exclusive && subscription.Type != Failover
	}
	p.delayed, p.delaysUnknown = s.partitions.delays()
	return p
}
