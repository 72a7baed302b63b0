// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	"slices"
	"time"
)

// namespaceState is a namespace that patterns need.
type namespaceState struct {
	patterns map[Topic]*patternState
	topics   []string  // of the last good listing, sorted, each once; never changed in place
	listedAt time.Time // zero before the first
	failure  error     // why the last listing failed; nil after a good one
}

// patternState is one pattern that subscriptions follow. Each of these subscriptions tracks each matched topic.
type patternState struct {
	pattern Pattern
	matched []string // sorted
	// uses has the number of owners for each use.
	uses map[use]int
}

func newPatternState(pattern Pattern) *patternState {
	return &patternState{pattern: pattern, uses: map[use]int{}}
}

// tenants are those of the patterns, each once.
func (n *namespaceState) tenants() []string {
	var names []string
	for _, pattern := range n.patterns {
		for use := range pattern.uses {
			if !slices.Contains(names, use.tenant) {
				names = append(names, use.tenant)
			}
		}
	}
	return names
}

// follows reports whether the subscription follows the pattern.
func (p *patternState) follows(subscription string) bool {
	for use := range p.uses {
		if use.name == subscription {
			return true
		}
	}
	return false
}

// acquirePattern tracks the subscription on all topics that the pattern matches, now and later. An invalid pattern is
// ignored here: readings report it.
func (s *tracked) acquirePattern(key Topic, use use) {
	state := s.patterns[key]
	if state == nil {
		pattern, err := ParsePattern(key.Name)
		if err != nil {
			return
		}
		state = newPatternState(pattern)
		s.patterns[key] = state
		s.addToNamespace(Namespace{Cluster: key.Cluster, Name: pattern.namespace}, key, state)
	}
	if state.uses[use]++; state.uses[use] == 1 {
		s.change(NamespaceJob(Namespace{Cluster: key.Cluster, Name: state.pattern.namespace}), false)
		for _, name := range state.matched {
			s.acquireTopic(Topic{Cluster: key.Cluster, Name: name}, use)
		}
		s.match(key, state.matched) // topics that are new
	}
}

// addToNamespace adds a new pattern to its namespace, with its matches of the last listing.
func (s *tracked) addToNamespace(namespace Namespace, key Topic, state *patternState) {
	listing := s.namespaces[namespace]
	if listing == nil {
		listing = &namespaceState{patterns: map[Topic]*patternState{}}
		s.namespaces[namespace] = listing
		s.change(NamespaceJob(namespace), true)
	}
	listing.patterns[key] = state
	state.matched = state.pattern.filter(listing.topics)
}

func (s *tracked) releasePattern(key Topic, use use) {
	state := s.patterns[key]
	if state == nil {
		return
	}
	if state.uses[use]--; state.uses[use] > 0 {
		return
	}
	delete(state.uses, use)
	last := len(state.uses) == 0
	for _, name := range state.matched {
		topic := Topic{Cluster: key.Cluster, Name: name}
		if last {
			s.unmatch(topic, key)
		}
		s.releaseTopic(topic, use)
	}
	namespace := Namespace{Cluster: key.Cluster, Name: state.pattern.namespace}
	if !last {
		s.change(NamespaceJob(namespace), false)
		return
	}
	delete(s.patterns, key)
	listing := s.namespaces[namespace]
	delete(listing.patterns, key)
	if len(listing.patterns) == 0 {
		delete(s.namespaces, namespace)
		s.change(NamespaceJob(namespace), false)
	}
}

// match records for each topic that the pattern matches it.
func (s *jobs) match(key Topic, names []string) {
	for _, name := range names {
		topic := s.topics[Topic{Cluster: key.Cluster, Name: name}]
		if !slices.Contains(topic.patterns, key) {
			topic.patterns = append(topic.patterns, key)
		}
	}
}

// RecordListing records the topics of a namespace at the time of the request, by complete names without partition
// suffixes in any order. New topics that a pattern matches are tracked from now on, removed ones no longer; the others
// keep their history. A listing older than the last one is dropped, and so is one that is no longer needed.
func (s *Store) RecordListing(namespace Namespace, topics []string, at time.Time) {
	topics = slices.Clone(topics)
	slices.Sort(topics)
	topics = slices.Compact(topics)
	expanded := expand(s, namespace, topics)

	s.mu.Lock()
	defer s.mu.Unlock()
	listing := s.namespaces[namespace]
	if listing == nil || !at.After(listing.listedAt) {
		return
	}
	listing.topics, listing.listedAt, listing.failure = topics, at, nil
	for key, state := range listing.patterns {
		matched, done := expanded[key]
		if !done { // added in between
			matched = state.pattern.filter(topics)
		}
		s.updateMatches(key, state, matched)
	}
}

// expand matches a listing against the patterns of its namespace. It holds no lock meanwhile: 10 000 topics and a
// pattern without a literal prefix take some milliseconds. A listing that has not changed is not matched again.
func expand(s *Store, namespace Namespace, topics []string) map[Topic][]string {
	s.mu.RLock()
	listing := s.namespaces[namespace]
	if listing == nil {
		s.mu.RUnlock()
		return nil
	}
	same := !listing.listedAt.IsZero() && slices.Equal(listing.topics, topics)
	patterns := make(map[Topic]Pattern, len(listing.patterns))
	expanded := make(map[Topic][]string, len(listing.patterns))
	for key, state := range listing.patterns {
		patterns[key], expanded[key] = state.pattern, state.matched
	}
	s.mu.RUnlock()
	if !same {
		for key, pattern := range patterns {
			expanded[key] = pattern.filter(topics)
		}
	}
	return expanded
}

// updateMatches tracks the new matches of a pattern instead of the earlier ones. mu is held.
func (s *tracked) updateMatches(key Topic, state *patternState, matched []string) {
	before := state.matched
	state.matched = matched
	added, removed := difference(before, matched)
	for use := range state.uses {
		for _, name := range added {
			s.acquireTopic(Topic{Cluster: key.Cluster, Name: name}, use)
		}
	}
	s.match(key, added)
	for _, name := range removed {
		topic := Topic{Cluster: key.Cluster, Name: name}
		s.unmatch(topic, key)
		for use := range state.uses {
			s.releaseTopic(topic, use)
		}
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

// FailListing records why a listing failed. The last listing stays in use until it is stale, unless Pulsar reports that
// the namespace does not exist.
func (s *Store) FailListing(namespace Namespace, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if listing := s.namespaces[namespace]; listing != nil {
		listing.failure = reason
	}
}

// relist requests new listings because a topic does not exist. mu is held.
func (s *tracked) relist(topic *topicState) {
	for _, key := range topic.patterns {
		pattern := s.patterns[key].pattern
		s.change(NamespaceJob(Namespace{Cluster: key.Cluster, Name: pattern.namespace}), true)
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

// check fails unless there is a listing that is not stale.
func (n *namespaceState) check(namespace string, staleAfter time.Duration, now time.Time) error {
	switch {
	case n.failure != nil && (Authoritative(n.failure) || n.listedAt.IsZero()):
		return n.failure
	case n.listedAt.IsZero():
		return fmt.Errorf("%w: the first listing of namespace %s is under way", ErrNoData, namespace)
	case now.Sub(n.listedAt) > max(staleAfter, staleListings*ListInterval):
		return fmt.Errorf("listing the topics of namespace %s: %w", namespace, staleError(n.listedAt, n.failure))
	}
	return nil
}

// PatternsIn returns the patterns of a namespace.
func (f *Feed) PatternsIn(namespace Namespace) []Topic {
	s := f.store
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
