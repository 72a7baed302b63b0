// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Read returns what is known of the subscription over all its topics. It fails with the reason when any of its topics
// is unknown: a sum without it would be too small.
//
// Topics that a pattern matches count for nothing while they lack the subscription, for a client finds them up to a
// minute late, and while Pulsar says that they do not exist, for they were deleted since the last listing. Only when no
// topic is left that counts does the reading fail. A new one makes it fail with ErrNoData until it has been fetched.
func (s *Store) Read(subscription Subscription, now time.Time) (Reading, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(subscription.Topics)+len(subscription.Patterns) == 0 {
		return Reading{}, fmt.Errorf("%w: subscription %s has no topics", ErrNotTracked, subscription.Name)
	}
	var sum sum
	for _, name := range subscription.Topics {
		one, err := s.readTopic(Topic{Cluster: subscription.Cluster, Name: name}, subscription.Name, now)
		if err != nil {
			return Reading{}, err
		}
		sum.add(one)
	}
	if err := s.readPatterns(subscription, now, &sum); err != nil {
		return Reading{}, err
	}
	if sum.topics == 0 {
		return Reading{}, sum.nothing(subscription)
	}
	sum.reading.UnsubscribedTopics = sum.unsubscribed
	sum.reading.Instances = s.readInstances(subscription.Workload, now)
	return sum.reading, nil
}

// sum is a reading over topics in the making.
type sum struct {
	reading Reading
	topics  int
	// unsubscribed topics lack the subscription, gone ones do not exist any more.
	unsubscribed, gone int
}

func (s *sum) add(one Reading) {
	if s.topics++; s.topics == 1 {
		s.reading = one
	} else {
		s.reading = s.reading.plus(one)
	}
}

// nothing says why no topic of a subscription with patterns counts.
func (s *sum) nothing(subscription Subscription) error {
	patterns := strings.Join(subscription.Patterns, ", ")
	switch {
	case s.unsubscribed > 0:
		return fmt.Errorf("%w: none of the %d topics that match %s has subscription %q; it appears when the first replica connects",
			ErrSubscriptionNotFound, s.unsubscribed, patterns, subscription.Name)
	case s.gone > 0:
		return fmt.Errorf("%w: all %d topics that matched %s are gone", ErrTopicNotFound, s.gone, patterns)
	default:
		return fmt.Errorf("%w: no topic of the namespace matches %s; create one or correct the pattern", ErrTopicNotFound, patterns)
	}
}

// readPatterns adds the topics that the patterns match and that were not named. mu is held.
func (s *Store) readPatterns(subscription Subscription, now time.Time, sum *sum) error {
	var counted map[string]struct{}
	if len(subscription.Patterns) > 1 {
		counted = map[string]struct{}{} // patterns may overlap
	}
	for _, text := range subscription.Patterns {
		state, err := s.readPattern(Topic{Cluster: subscription.Cluster, Name: text}, subscription, now)
		if err != nil {
			return err
		}
		for _, name := range state.matched {
			if _, named := slices.BinarySearch(subscription.Topics, name); named {
				continue
			}
			if _, seen := counted[name]; seen {
				continue
			}
			if counted != nil {
				counted[name] = struct{}{}
			}
			if err := s.readMatched(Topic{Cluster: subscription.Cluster, Name: name}, subscription.Name, now, sum); err != nil {
				return err
			}
		}
	}
	return nil
}

// readPattern returns what a pattern matches, or why that is not known. mu is held.
func (s *Store) readPattern(key Topic, subscription Subscription, now time.Time) (*patternState, error) {
	state := s.patterns[key]
	if state == nil {
		if _, err := ParsePattern(key.Name); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %s", ErrNotTracked, key.Name)
	}
	if state.uses[use{name: subscription.Name}]+state.uses[use{name: subscription.Name, bytes: true}] == 0 {
		return nil, fmt.Errorf("%w: subscription %s on %s", ErrNotTracked, subscription.Name, key.Name)
	}
	namespace := Namespace{Cluster: key.Cluster, Name: state.pattern.namespace}
	return state, s.namespaces[namespace].check(namespace.Name, s.staleAfter, now)
}

// readMatched adds a topic that a pattern matches. mu is held.
func (s *Store) readMatched(key Topic, subscription string, now time.Time, sum *sum) error {
	one, err := s.readTopic(key, subscription, now)
	switch {
	case err == nil:
		sum.add(one)
	case errors.Is(err, ErrSubscriptionNotFound):
		sum.unsubscribed++
	case errors.Is(err, ErrTopicNotFound):
		sum.gone++
	default:
		return err
	}
	return nil
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
