// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Store keeps the recent measurements of the tracked topics, and serves readings from memory. It is safe for concurrent
// use. At most one Poller runs on it.
type Store struct {
	tracked
}

// tracked is what owners track, and its state.
type tracked struct {
	// mu guards everything below.
	mu sync.RWMutex

	rateWindow, staleAfter time.Duration
	owners                 map[string]*interest
	ownersUntilNow         uint64                  // all that there were
	ends                   map[string]time.Time    // of interest that has one, by owner
	patterns               map[Topic]*patternState // by cluster and text
	bounds                 Bounds
	jobs
}

// jobs are the jobs of a poller, with their state.
type jobs struct {
	topics     map[Topic]*topicState
	namespaces map[Namespace]*namespaceState
	workloads  map[Workload]*workloadState
	pairs      map[string]int // of a topic and a subscription, for each tenant
	// changed are the jobs that were added, were removed or became due since the last call of Changes, and whether they
	// are due at once; nil without a poller.
	changed map[Job]bool
	// instances is true if the poller reads the instances of workloads.
	instances bool
}

// windowSlack is the share of rateWindow that a window may be too short. rateWindow is one poll interval by default,
// and polls are not exact to the millisecond: without slack about every second rate would be measured over two of them.
const windowSlack = 10

// NewStore returns an empty store. Rates are measured over at least nine tenths of rateWindow if answers are more
// frequent than that; an answer older than staleAfter is no longer served.
func NewStore(rateWindow, staleAfter time.Duration, bounds Bounds) (*Store, error) {
	if rateWindow < time.Second || rateWindow > 10*time.Minute {
		return nil, fmt.Errorf("rateWindow is %s, must be from 1s to 10m", rateWindow)
	}
	if staleAfter < rateWindow {
		return nil, fmt.Errorf("staleAfter is %s, must not be shorter than rateWindow (%s)", staleAfter, rateWindow)
	}
	return &Store{tracked: tracked{
		rateWindow: rateWindow - rateWindow/windowSlack, staleAfter: staleAfter, bounds: bounds,
		owners: map[string]*interest{}, ends: map[string]time.Time{}, patterns: map[Topic]*patternState{},
		jobs: jobs{
			topics: map[Topic]*topicState{}, namespaces: map[Namespace]*namespaceState{},
			workloads: map[Workload]*workloadState{}, pairs: map[string]int{},
		},
	}}, nil
}

// Bounds are how much owners may track; 0 is no bound. A subscription beyond one is refused as a whole
// (ErrTooManyTopics): it tracks nothing until it fits.
type Bounds struct {
	// Subscription bounds the topics of one subscription: those that it names and the matches of its patterns.
	Subscription int
	// Namespace bounds the topics that the owners of one Kubernetes namespace track, once for each subscription.
	Namespace int
}

// refuseSubscription returns why a subscription may not have these topics; nil if it may. tooMany is true if a pattern
// matches more than one may have: these were not counted.
func (b Bounds) refuseSubscription(topics tracks, tooMany bool) error {
	if b.Subscription == 0 || !tooMany && len(topics.topics) <= b.Subscription {
		return nil
	}
	count := grouped(len(topics.topics))
	if tooMany {
		count = "more than " + grouped(max(b.Subscription, len(topics.topics)))
	}
	return Errorf(ErrTooManyTopics, "subscription %s has %s topics, and the bound of a subscription is %s: name fewer, "+
		"or raise --max-topics-per-subscription (value pulsar.maxTopicsPerSubscription of the chart)",
		topics.subscription.Name, count, grouped(b.Subscription))
}

// refuseNamespace returns why a tenant may not track these topics, with which it would have after pairs of topic and
// subscription instead of before; nil if it may. Who tracks already keeps what it has.
func (b Bounds) refuseNamespace(topics tracks, before, after int) error {
	if b.Namespace == 0 || after <= max(before, b.Namespace) {
		return nil
	}
	return Errorf(ErrTooManyTopics, "with the %s of subscription %s, all subscriptions of the Kubernetes namespace "+
		"would have %s topics, and the bound of a namespace is %s: track fewer, or raise --max-topics-per-namespace "+
		"(value pulsar.maxTopicsPerNamespace of the chart)", grouped(len(topics.topics)), topics.subscription.Name,
		grouped(after), grouped(b.Namespace))
}

// pairsAfter is the number of pairs of a tenant that tracks these topics instead of the earlier ones.
func (s *jobs) pairsAfter(tenant string, before, after tracks) int {
	pairs := s.pairs[tenant]
	added, removed := after.since(before)
	for _, name := range added {
		if s.interestsOf(tenant, after.subscription, name) == 0 {
			pairs++
		}
	}
	for _, name := range removed {
		if s.interestsOf(tenant, before.subscription, name) == 1 {
			pairs--
		}
	}
	return pairs
}

// interestsOf is the number of interests of a tenant in the subscription on a topic.
func (s *jobs) interestsOf(tenant string, subscription Subscription, name string) int {
	topic := s.topics[Topic{Cluster: subscription.Cluster, Name: name}]
	if topic == nil || topic.subscriptions[subscription.Name] == nil {
		return 0
	}
	return topic.subscriptions[subscription.Name].interests.of(tenant)
}

// CountTopics is the number of tracked topics for each cluster.
func (s *Store) CountTopics() map[Cluster]int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	counts := map[Cluster]int{}
	for topic := range s.topics {
		counts[topic.Cluster]++
	}
	return counts
}

// Record records a good answer. Answers older than the last one are dropped, and so are answers about topics that are
// no longer tracked.
func (s *Store) Record(topic Topic, sample TopicSample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.topics[topic]
	if state == nil || !sample.At.After(state.answeredAt) {
		return
	}
	if sample.At.Sub(state.answeredAt) > s.staleAfter {
		state.reset()
	}
	state.record(sample, s.rateWindow)
	state.relistRequested = false
}

// Fail records why a fetch failed. The last answer stays in use until it is stale, unless Pulsar reports that the topic
// does not exist: then it is not used after other failures either.
func (s *Store) Fail(topic Topic, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.topics[topic]
	if state == nil {
		return
	}
	if errors.Is(state.failure, ErrTopicNotFound) {
		state.reset()
	}
	state.failure = reason
	state.slow.fail(reason)
	if Authoritative(reason) && !state.relistRequested {
		state.relistRequested = true // once: a listing may still have the name of a missing topic
		s.relist(topic)
	}
}

// RecordPush records why brokers refuse to report messages of the topic; nil if they do not refuse.
func (s *Store) RecordPush(topic Topic, refused error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.topics[topic]; state != nil {
		state.pushRefused = refused
	}
}

// RecordMessage records that a message was published to the topic: until the next answer each of its subscriptions has
// a backlog that wakes one replica.
func (s *Feed) RecordMessage(topic Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.topics[topic]; state != nil {
		for _, one := range state.subscriptions {
			one.unconfirmed = max(1, one.unconfirmed)
		}
	}
}

// NextRequest is what the next fetch of the topic should request, and records that it is requested.
func (s *Feed) NextRequest(topic Topic, now time.Time) Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.topics[topic]
	if state == nil {
		return Request{Subscriptions: []string{}}
	}
	detail := state.nextDetail(now)
	state.slow.requested, state.slow.requestedAt = detail, now
	if detail.Has(Precise) {
		state.exact.requestedAt = now
	}
	return Request{Detail: detail, Subscriptions: slices.Sorted(maps.Keys(state.subscriptions))}
}

// WantsEntries reports whether to request entry counters after an answer without them, and records that they are
// requested.
func (s *Feed) WantsEntries(topic Topic, sample TopicSample) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.topics[topic]
	if state == nil || !state.wantsEntries(sample) {
		return false
	}
	state.batches.requestedAt = sample.At
	return true
}
