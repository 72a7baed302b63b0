// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import "time"

// topicState is one tracked topic. A subscription stays in it until no owner is left.
type topicState struct {
	counters      topicCounters
	published     flow
	subscriptions map[string]*subscriptionState

	answeredAt time.Time // last good answer; zero before the first
	fullAt     time.Time // last full one
	trouble    error     // why the last fetch failed; nil after a good one
}

// subscriptionState is one tracked subscription of one topic.
type subscriptionState struct {
	owners    int
	bytes     int // owners that ask for the backlog in bytes
	counters  map[int]subscriptionCounters
	processed flow
	history   history
	missing   bool // the last good answer did not have it
}

// record turns an answer into points of the tracked subscriptions.
func (t *topicState) record(sample TopicSample, window time.Duration) {
	interval := sample.At.Sub(t.answeredAt)
	published, sound := t.counters.publishedSince(sample)
	if sound && !t.answeredAt.IsZero() {
		t.published.messages += published
		t.published.observed += interval
	}
	if sample.Detail.Has(Full) {
		t.counters.learnMeanBatch(sample)
		t.fullAt = sample.At
	}
	for name, state := range t.subscriptions {
		state.record(name, sample, interval)
		if state.missing {
			continue
		}
		p := state.point(name, sample)
		p.published = t.published
		p.meanBatch = max(1, t.counters.meanBatch)
		state.history.add(p, window)
		if sample.Detail.Has(Full) {
			state.history.addConsumers(consumerCount{at: sample.At, count: countConsumers(name, sample)}, window)
		}
	}
	t.answeredAt = sample.At
	t.trouble = nil
}

// startAnew forgets what rates and least values rest on, after a time in which nothing was known: two answers with that
// time between them do not say that replicas were busy throughout, nor what arrives now. The mean batch stays.
func (t *topicState) startAnew() {
	t.counters.partitions = nil
	for _, state := range t.subscriptions {
		state.counters, state.history = nil, history{}
	}
}

// record updates the counters and the flow of finished messages.
func (s *subscriptionState) record(name string, sample TopicSample, interval time.Duration) {
	now := map[int]subscriptionCounters{}
	for index, subscription := range sample.parts(name) {
		now[index] = subscriptionCounters{delivered: subscription.DeliveredMessages, unacked: subscription.UnackedMessages}
	}
	s.missing = len(now) == 0
	if s.missing {
		s.history = history{} // a subscription made anew starts with nothing known
	}
	if finished, sound := finishedSince(s.counters, now); sound && len(s.counters) > 0 {
		s.processed.messages += finished
		s.processed.observed += interval
	}
	s.counters = now
}

// point sums the partitions of one subscription.
func (s *subscriptionState) point(name string, sample TopicSample) point {
	p := point{at: sample.At, processed: s.processed, subType: NoType}
	for _, subscription := range sample.parts(name) {
		p.total += subscription.BacklogEntries
		p.delayed += subscription.DelayedMessages
		p.unacked += subscription.UnackedMessages
		p.blocked = p.blocked || subscription.Blocked
		if subscription.Type != "" && subscription.Type != NoType {
			p.subType = subscription.Type
		}
	}
	p.countsUnacked = p.subType != Exclusive && p.subType != Failover
	return p
}

// countConsumers counts each consumer once, on however many partitions it is.
func countConsumers(name string, sample TopicSample) int {
	seen := map[string]struct{}{}
	for _, subscription := range sample.parts(name) {
		for _, consumer := range subscription.Consumers {
			seen[consumer.ID] = struct{}{}
		}
	}
	return len(seen)
}

// fullInterval is how old the last full answer of an idle topic may get: often enough to follow a changed batch size,
// rarely enough that an idle topic costs its broker one extra request a minute.
const fullInterval = time.Minute

// nextDetail says what to ask for: everything while something waits, for then decisions depend on it.
func (t *topicState) nextDetail(now time.Time) Detail {
	if now.Sub(t.fullAt) >= fullInterval {
		return Full
	}
	for _, state := range t.subscriptions {
		if points := state.history.points; len(points) > 0 && state.history.last().total > 0 {
			return Full
		}
	}
	return Slim
}
