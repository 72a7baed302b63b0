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
// Topics that a pattern matches count for nothing while they lack the subscription, because a client finds them up to a
// minute late, and while Pulsar says that they do not exist, because they were deleted since the last listing. Only
// when no topic is left that counts does the reading fail. A new one makes it fail with ErrNoData until it has been
// fetched.
func (s *Store) Read(subscription Subscription, now time.Time) (Reading, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var few [4]input // most subscriptions have no more topics, and need no memory for them
	inputs, err := s.inputs(subscription, now, few[:0])
	if err != nil {
		return Reading{}, err
	}
	var sum Reading
	for i, one := range inputs.known {
		reading := one.topic.read(one.state, now)
		if i > 0 {
			reading = sum.plus(reading)
		}
		sum = reading
	}
	sum.UnsubscribedTopics = inputs.unsubscribed
	sum.Instances = s.readInstances(subscription.Workload, now)
	return sum, nil
}

// ReadyAtLeast is how many messages are ready on the topics that are known, while a reading fails because of others:
// the backlog for sure. 0 says nothing.
func (s *Store) ReadyAtLeast(subscription Subscription, now time.Time) (messages float64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	matched, err := s.matched(subscription, now)
	if err != nil {
		matched = nil
	}
	for _, names := range [][]string{subscription.Topics, matched} {
		for _, name := range names {
			one, err := s.input(Topic{Cluster: subscription.Cluster, Name: name}, subscription.Name, now)
			if err == nil {
				messages += one.state.history.last().ready()
			}
		}
	}
	return messages
}

// inputs are the topics that count for a reading.
type inputs struct {
	known []input
	// unsubscribed topics match and lack the subscription, gone ones do not exist any more.
	unsubscribed, gone int
}

// input is a topic that has been answered and has the subscription.
type input struct {
	name  string
	topic *topicState
	state *subscriptionState
}

// inputs appends the topics that count, at least one, or says why the subscription is unknown. mu is held.
func (s *tracked) inputs(subscription Subscription, now time.Time, to []input) (inputs, error) {
	if len(subscription.Topics)+len(subscription.Patterns) == 0 {
		return inputs{}, fmt.Errorf("%w: subscription %s has no topics", ErrNotTracked, subscription.Name)
	}
	found := inputs{known: to}
	for _, name := range subscription.Topics {
		one, err := s.input(Topic{Cluster: subscription.Cluster, Name: name}, subscription.Name, now)
		if err != nil {
			return inputs{}, err
		}
		found.known = append(found.known, one)
	}
	matched, err := s.matched(subscription, now)
	if err != nil {
		return inputs{}, err
	}
	for _, name := range matched {
		one, err := s.input(Topic{Cluster: subscription.Cluster, Name: name}, subscription.Name, now)
		switch {
		case err == nil:
			found.known = append(found.known, one)
		case errors.Is(err, ErrSubscriptionNotFound):
			found.unsubscribed++
		case errors.Is(err, ErrTopicNotFound):
			found.gone++
		default:
			return inputs{}, err
		}
	}
	if len(found.known) == 0 {
		return inputs{}, found.unknown(subscription)
	}
	return found, nil
}

// unknown says why no topic of a subscription with patterns counts.
func (i *inputs) unknown(subscription Subscription) error {
	patterns := strings.Join(subscription.Patterns, ", ")
	switch {
	case i.unsubscribed > 0:
		return fmt.Errorf("%w: no topic that matches %s has subscription %q; it appears when the first replica connects",
			ErrSubscriptionNotFound, patterns, subscription.Name)
	case i.gone > 0:
		return fmt.Errorf("%w: the topics that matched %s are gone", ErrTopicNotFound, patterns)
	default:
		return fmt.Errorf("%w: no topic of the namespace matches %s; create one or correct the pattern", ErrTopicNotFound,
			patterns)
	}
}

// matched returns the topics that the patterns match and that are not named, each once. mu is held.
func (s *tracked) matched(subscription Subscription, now time.Time) ([]string, error) {
	var names []string
	for _, text := range subscription.Patterns {
		state, err := s.readPattern(Topic{Cluster: subscription.Cluster, Name: text}, subscription, now)
		if err != nil {
			return nil, err
		}
		names = append(names, state.matched...)
	}
	if len(subscription.Patterns) > 1 { // they may overlap
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, named := slices.BinarySearch(subscription.Topics, name)
		return named
	}), nil
}

// readPattern returns what a pattern matches, or why that is not known. mu is held.
func (s *tracked) readPattern(key Topic, subscription Subscription, now time.Time) (*patternState, error) {
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

// input returns a topic for a reading, or why what it has of the subscription is unknown. mu is held.
func (s *tracked) input(key Topic, subscription string, now time.Time) (input, error) {
	topic := s.topics[key]
	if topic == nil {
		return input{}, fmt.Errorf("%w: %s", ErrNotTracked, key.Name)
	}
	state := topic.subscriptions[subscription]
	switch {
	case state == nil:
		return input{}, fmt.Errorf("%w: subscription %s on %s", ErrNotTracked, subscription, key.Name)
	case topic.failure != nil && Authoritative(topic.failure):
		return input{}, topic.failure
	case topic.answeredAt.IsZero() && topic.failure != nil:
		return input{}, topic.failure
	case !topic.answeredAt.IsZero() && now.Sub(topic.answeredAt) > s.staleAfter:
		return input{}, staleError(topic.answeredAt, topic.failure)
	case state.missing:
		return input{}, fmt.Errorf("%w: %s has no subscription %q; it appears when the first replica connects",
			ErrSubscriptionNotFound, key.Name, subscription)
	case len(state.history.points) == 0 && topic.failure != nil:
		return input{}, topic.failure
	case len(state.history.points) == 0:
		return input{}, fmt.Errorf("%w: first answer about %s is under way", ErrNoData, key.Name)
	}
	return input{name: key.Name, topic: topic, state: state}, nil
}

// staleError says since when, not how long ago: the text stands in conditions, which must not change every second.
func staleError(since time.Time, failure error) error {
	at := since.UTC().Format(time.RFC3339)
	if failure == nil {
		return fmt.Errorf("%w: no answer since %s", ErrStale, at)
	}
	return fmt.Errorf("%w: no good answer since %s: %w", ErrStale, at, failure)
}
