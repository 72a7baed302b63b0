// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Attach attaches a Poller.
func Attach(s *Store) { s.Feed(false).Changes() }

// CannotWait reports whether a Poller would fetch the topic at its next tick.
func CannotWait(s *Store, topic Topic) bool {
	return slices.ContainsFunc((*Feed)(s).Changes(), func(c Change) bool {
		return c.Job == TopicJob(topic) && c.Wanted && c.Soon
	})
}

// TrackedTopics are the names of the topics that a Poller would fetch, sorted, with the patterns of each.
func TrackedTopics(s *Store) map[string][]string {
	tracked := map[string][]string{}
	for topic := range s.topics {
		tracked[topic.Name] = []string{}
		for key, state := range s.patterns {
			if _, matches := slices.BinarySearch(state.matched, topic.Name); matches && key.Cluster == topic.Cluster {
				tracked[topic.Name] = append(tracked[topic.Name], key.Name)
			}
		}
		slices.Sort(tracked[topic.Name])
	}
	return tracked
}

// Pairs are the numbers of pairs of a topic and a subscription for each tenant.
func Pairs(s *Store) map[string]int { return s.pairs }

// Remains lists what the store still keeps about tracked subscriptions.
func Remains(s *Store) string {
	var remains []string
	for topic := range s.topics {
		remains = append(remains, topic.Name)
	}
	for pattern := range s.patterns {
		remains = append(remains, pattern.Name)
	}
	for namespace := range s.namespaces {
		remains = append(remains, namespace.Name)
	}
	for workload := range s.workloads {
		remains = append(remains, workload.String())
	}
	remains = slices.AppendSeq(remains, maps.Keys(s.pairs))
	remains = slices.AppendSeq(remains, maps.Keys(s.owners))
	return strings.Join(remains, " ")
}

// MatchWithoutPrefix is Match without the comparison of the prefix.
func (p Pattern) MatchWithoutPrefix(topic string) bool {
	p.prefix = ""
	return p.Match(topic)
}

// List records a listing as a poller does.
func List(s *Store, namespace Namespace, topics []string, at time.Time) {
	listing := (*Feed)(s).NextListing(namespace)
	for _, topic := range topics {
		listing.Add(topic)
	}
	s.RecordListing(listing, at, nil)
}

// FailListing records why a listing failed.
func FailListing(s *Store, namespace Namespace, reason error) {
	s.RecordListing(&Listing{namespace: namespace}, time.Time{}, reason)
}
