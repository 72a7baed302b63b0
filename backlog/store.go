// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	"sync"
	"time"
)

// Store keeps what was measured lately of the topics that somebody tracks, and answers readings from memory. It is
// safe for concurrent use.
type Store struct {
	rateWindow, staleAfter time.Duration

	// mu guards everything below.
	mu     sync.RWMutex
	owners map[string]interest
	topics map[Topic]*topicState
	// version grows whenever the set of topics changes.
	version uint64
}

// interest is what one owner tracks; a zero until means until it is untracked.
type interest struct {
	subscription Subscription
	until        time.Time
}

// NewStore returns an empty store. Rates are measured over at least rateWindow where answers come more often than
// that; an answer older than staleAfter is no longer served.
func NewStore(rateWindow, staleAfter time.Duration) (*Store, error) {
	if rateWindow < time.Second || rateWindow > 10*time.Minute {
		return nil, fmt.Errorf("rateWindow is %s, must be from 1s to 10m", rateWindow)
	}
	if staleAfter < rateWindow {
		return nil, fmt.Errorf("staleAfter is %s, must not be shorter than rateWindow (%s)", staleAfter, rateWindow)
	}
	return &Store{
		rateWindow: rateWindow, staleAfter: staleAfter,
		owners: map[string]interest{}, topics: map[Topic]*topicState{},
	}, nil
}

// Track makes the owner follow this subscription, instead of whatever it followed before, until Untrack.
func (s *Store) Track(owner string, subscription Subscription) {
	s.track(owner, interest{subscription: subscription})
}

// TrackUntil is Track for interest that ends by itself when it is not renewed.
func (s *Store) TrackUntil(owner string, subscription Subscription, until time.Time) {
	s.track(owner, interest{subscription: subscription, until: until})
}

func (s *Store) track(owner string, wanted interest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, seen := s.owners[owner]
	s.owners[owner] = wanted
	if seen && before.subscription.Equal(wanted.subscription) {
		return
	}
	s.acquire(wanted.subscription) // before the release, so that what both name keeps its history
	if seen {
		s.release(before.subscription)
	}
}

// Untrack ends the owner's interest.
func (s *Store) Untrack(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.untrack(owner)
}

// Expire ends interest that was not renewed in time.
func (s *Store) Expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for owner, i := range s.owners {
		if !i.until.IsZero() && now.After(i.until) {
			s.untrack(owner)
		}
	}
}

func (s *Store) untrack(owner string) {
	if i, seen := s.owners[owner]; seen {
		delete(s.owners, owner)
		s.release(i.subscription)
	}
}

func (s *Store) acquire(subscription Subscription) {
	for _, name := range subscription.Topics {
		key := Topic{Cluster: subscription.Cluster, Name: name}
		topic := s.topics[key]
		if topic == nil {
			topic = &topicState{subscriptions: map[string]*subscriptionState{}}
			s.topics[key] = topic
			s.version++
		}
		state := topic.subscriptions[subscription.Name]
		if state == nil {
			state = &subscriptionState{}
			topic.subscriptions[subscription.Name] = state
		}
		state.owners++
		if subscription.Bytes {
			state.bytes++
		}
	}
}

func (s *Store) release(subscription Subscription) {
	for _, name := range subscription.Topics {
		key := Topic{Cluster: subscription.Cluster, Name: name}
		topic := s.topics[key]
		state := topic.subscriptions[subscription.Name]
		if subscription.Bytes {
			state.bytes--
		}
		if state.owners--; state.owners == 0 {
			delete(topic.subscriptions, subscription.Name)
		}
		if len(topic.subscriptions) == 0 {
			delete(s.topics, key)
			s.version++
		}
	}
}

// Record takes in a good answer. Answers older than the last one are dropped, and so are those of topics that nobody
// tracks any more.
func (s *Store) Record(topic Topic, sample TopicSample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.topics[topic]
	if state == nil || !sample.At.After(state.answeredAt) {
		return
	}
	if sample.At.Sub(state.answeredAt) > s.staleAfter {
		state.startAnew()
	}
	state.record(sample, s.rateWindow)
}

// Fail takes in why a fetch failed. What was known stays in force until it is stale, unless Pulsar itself says that
// the topic is gone.
func (s *Store) Fail(topic Topic, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.topics[topic]; state != nil {
		state.trouble = reason
	}
}

// trackedTopics returns the tracked topics and the version of that set, or nil when it is still the given version.
func (s *Store) trackedTopics(known uint64) ([]Topic, uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.version == known {
		return nil, known
	}
	topics := make([]Topic, 0, len(s.topics))
	for topic := range s.topics {
		topics = append(topics, topic)
	}
	return topics, s.version
}

// nextDetail says how much the next fetch of the topic should ask for.
func (s *Store) nextDetail(topic Topic, now time.Time) Detail {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if state := s.topics[topic]; state != nil {
		return state.nextDetail(now)
	}
	return Slim
}

// Read returns what is known of the subscription over all its topics. It fails with the reason when any of its topics
// is unknown: a sum without it would be too small.
func (s *Store) Read(subscription Subscription, now time.Time) (Reading, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(subscription.Topics) == 0 {
		return Reading{}, fmt.Errorf("%w: subscription %s has no topics", ErrNotTracked, subscription.Name)
	}
	var sum Reading
	for i, name := range subscription.Topics {
		one, err := s.readTopic(Topic{Cluster: subscription.Cluster, Name: name}, subscription.Name, now)
		if err != nil {
			return Reading{}, err
		}
		if i == 0 {
			sum = one
		} else {
			sum = sum.plus(one)
		}
	}
	return sum, nil
}

// readTopic returns what is known of the subscription on one topic, or why nothing is. mu is held.
func (s *Store) readTopic(key Topic, subscription string, now time.Time) (Reading, error) {
	topic := s.topics[key]
	if topic == nil {
		return Reading{}, fmt.Errorf("%w: %s", ErrNotTracked, key.Name)
	}
	state := topic.subscriptions[subscription]
	switch {
	case state == nil:
		return Reading{}, fmt.Errorf("%w: subscription %s on %s", ErrNotTracked, subscription, key.Name)
	case topic.trouble != nil && Authoritative(topic.trouble):
		return Reading{}, topic.trouble
	case topic.answeredAt.IsZero() && topic.trouble != nil:
		return Reading{}, topic.trouble
	case !topic.answeredAt.IsZero() && now.Sub(topic.answeredAt) > s.staleAfter:
		return Reading{}, staleError(topic.answeredAt, topic.trouble)
	case state.missing:
		return Reading{}, fmt.Errorf("%w: %s has no subscription %q; it appears when the first replica connects",
			ErrSubscriptionNotFound, key.Name, subscription)
	case len(state.history.points) == 0:
		return Reading{}, fmt.Errorf("%w: first answer about %s is under way", ErrNoData, key.Name)
	}
	return topic.read(state, now), nil
}

// staleError says since when, not how long ago: the text stands in conditions, which must not change every second.
func staleError(since time.Time, trouble error) error {
	at := since.UTC().Format(time.RFC3339)
	if trouble == nil {
		return fmt.Errorf("%w: no answer since %s", ErrStale, at)
	}
	return fmt.Errorf("%w: no good answer since %s: %w", ErrStale, at, trouble)
}
