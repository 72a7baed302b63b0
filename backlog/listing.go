// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

type namespaceState struct {
	patterns map[Topic]*patternState
	listedAt time.Time // of the last good listing; zero before the first
	failure  error     // why the last listing failed; nil after a good one
}

type patternState struct {
	pattern Pattern
	// matched are the matches of the last listing, sorted, or none if they are too many, see Listing. They are preliminary
	// until a listing was requested since the pattern is followed.
	matched   []string
	tooMany   bool
	listed    bool
	interests interests
}

// follows reports whether an owner tracks the subscription on the matches of the pattern.
func (p *patternState) follows(subscription string) bool {
	for _, one := range p.interests {
		if one.tracks.subscription.Name == subscription {
			return true
		}
	}
	return false
}

// follow makes an interest follow the patterns of a subscription, now and after later listings.
func (s *tracked) follow(one *interest, subscription Subscription) {
	for _, text := range subscription.Patterns {
		key := Topic{Cluster: subscription.Cluster, Name: text}
		state := s.patterns[key]
		if state == nil {
			pattern, err := ParsePattern(text)
			if err != nil {
				continue // WithPatterns sets no such text
			}
			state = &patternState{pattern: pattern}
			if one.tracks.subscription.Cluster == key.Cluster { // what stays keeps its history until the listing
				state.matched = slices.DeleteFunc(slices.Clone(one.tracks.topics), func(name string) bool {
					return !pattern.Match(name)
				})
			}
			s.patterns[key] = state
			s.addToNamespace(key, state)
		}
		if !slices.Contains(state.interests, one) {
			state.interests.add(one)
		}
		s.change(NamespaceJob(NamespaceOf(key.Cluster, key.Name)), false)
	}
}

// addToNamespace has a new pattern listed at once.
func (s *tracked) addToNamespace(key Topic, state *patternState) {
	namespace := NamespaceOf(key.Cluster, key.Name)
	listing := s.namespaces[namespace]
	if listing == nil {
		listing = &namespaceState{patterns: map[Topic]*patternState{}}
		s.namespaces[namespace] = listing
	}
	listing.patterns[key] = state
	s.change(NamespaceJob(namespace), true)
}

// unfollow ends that an interest follows the patterns of a subscription, except those that the next one has too.
func (s *tracked) unfollow(one *interest, subscription, next Subscription) {
	for _, text := range subscription.Patterns {
		key := Topic{Cluster: subscription.Cluster, Name: text}
		state := s.patterns[key]
		if state == nil || subscription.Cluster == next.Cluster && slices.Contains(next.Patterns, text) {
			continue
		}
		state.interests.remove(one)
		namespace := NamespaceOf(key.Cluster, key.Name)
		s.change(NamespaceJob(namespace), false)
		if len(state.interests) > 0 {
			continue
		}
		delete(s.patterns, key)
		delete(s.namespaces[namespace].patterns, key)
		if len(s.namespaces[namespace].patterns) == 0 {
			delete(s.namespaces, namespace)
		}
	}
}

// Listing collects the topics of a namespace that match its patterns. It keeps none of a pattern that matches more than
// the bound of a subscription. It is not safe for concurrent use.
type Listing struct {
	namespace Namespace
	bound     int // 0 for none
	patterns  []patternListing
}

type patternListing struct {
	key     Topic
	pattern Pattern
	matched map[string]struct{}
	tooMany bool
}

// NextListing is a listing for the patterns that the namespace has now.
func (s *Feed) NextListing(namespace Namespace) *Listing {
	s.mu.RLock()
	defer s.mu.RUnlock()
	listing := &Listing{namespace: namespace, bound: s.bounds.Subscription}
	if state := s.namespaces[namespace]; state != nil {
		for key, one := range state.patterns {
			listing.patterns = append(listing.patterns, patternListing{
				key: key, pattern: one.pattern, matched: map[string]struct{}{},
			})
		}
	}
	return listing
}

// Add adds a topic by its complete name without partition suffix, in any order. A repeated one counts once.
func (l *Listing) Add(topic string) {
	for i := range l.patterns {
		one := &l.patterns[i]
		if one.tooMany || !one.pattern.Match(topic) {
			continue
		}
		if one.matched[topic] = struct{}{}; l.bound > 0 && len(one.matched) > l.bound {
			one.matched, one.tooMany = nil, true
		}
	}
}

// RecordListing records a complete listing that was requested at this time. New topics that a pattern matches are
// tracked from now on, removed ones no longer; the others keep their history. A listing older than the last one is
// dropped, and so is one that is no longer needed. Owners that need more than before get it in the order they came.
// After a failure the last one stays in use until it is stale, unless Pulsar reports that the namespace does not exist.
func (s *Store) RecordListing(listing *Listing, at time.Time, failure error) {
	matches := make([][]string, len(listing.patterns))
	for i, one := range listing.patterns {
		matches[i] = slices.Sorted(maps.Keys(one.matched))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	namespace := s.namespaces[listing.namespace]
	switch {
	case namespace == nil || failure == nil && !at.After(namespace.listedAt):
		return
	case failure != nil:
		namespace.failure = failure
		return
	}
	namespace.listedAt, namespace.failure = at, nil
	var changed interests
	for i, one := range listing.patterns {
		state := s.patterns[one.key]
		if state == nil || state.listed && state.tooMany == one.tooMany && slices.Equal(state.matched, matches[i]) {
			continue
		}
		state.matched, state.tooMany, state.listed = matches[i], one.tooMany, true
		changed = append(changed, state.interests...)
	}
	slices.SortFunc(changed, (*interest).compare)
	for _, one := range slices.Compact(changed) {
		s.update(one)
	}
}

// difference returns the elements that only the second and only the first of two sorted lists has.
func difference(before, after []string) (added, removed []string) {
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && before[0] < after[0]:
			removed, before = append(removed, before[0]), before[1:]
		case len(before) == 0 || after[0] < before[0]:
			added, after = append(added, after[0]), after[1:]
		default:
			before, after = before[1:], after[1:]
		}
	}
	return added, removed
}

// relist requests a new listing because a topic does not exist. mu is held.
func (s *jobs) relist(topic Topic) {
	if namespace := NamespaceOf(topic.Cluster, topic.Name); s.namespaces[namespace] != nil {
		s.change(NamespaceJob(namespace), true)
	}
}

// Listings are less frequent than answers, so they have their own staleness.
const (
	// ListInterval is how often a namespace is listed. A client learns about a new topic from the broker within a second,
	// or polls once a minute.
	ListInterval = 30 * time.Second
	// staleListings of 3 tolerates two failed listings.
	staleListings = 3
)

// check fails unless there is a listing with the pattern that is not stale.
func (n *namespaceState) check(pattern *patternState, staleAfter time.Duration, now time.Time) error {
	namespace := pattern.pattern.namespace
	switch {
	case n.failure != nil && (Authoritative(n.failure) || !pattern.listed):
		return n.failure
	case !pattern.listed:
		return fmt.Errorf("%w: the first listing of namespace %s is under way", ErrNoData, namespace)
	case now.Sub(n.listedAt) > max(staleAfter, staleListings*ListInterval):
		return fmt.Errorf("listing the topics of namespace %s: %w", namespace, staleError(n.listedAt, n.failure))
	}
	return nil
}

// PatternsIn returns the patterns of a namespace.
func (s *Feed) PatternsIn(namespace Namespace) []Topic {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var patterns []Topic
	if listing := s.namespaces[namespace]; listing != nil {
		for key := range listing.patterns {
			patterns = append(patterns, key)
		}
	}
	return patterns
}
