// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"maps"
	"slices"
	"strings"
)

// AttachBulk attaches a Poller with a BulkSource.
func AttachBulk(s *Store) { s.Feed(Extras{Bulk: true}).Changes() }

// CannotWait reports whether a Poller would fetch the topic at its next tick.
func CannotWait(s *Store, topic Topic) bool {
	return slices.ContainsFunc((&Feed{store: s}).Changes(), func(c Change) bool {
		return c.Job == TopicJob(topic) && c.Wanted && c.Soon
	})
}

// TrackedTopics are the names of the topics that a Poller would fetch, sorted, with the patterns of each.
func TrackedTopics(s *Store) map[string][]string {
	tracked := map[string][]string{}
	for topic, state := range s.topics {
		tracked[topic.Name] = []string{}
		for _, pattern := range state.patterns {
			tracked[topic.Name] = append(tracked[topic.Name], pattern.Name)
		}
		slices.Sort(tracked[topic.Name])
	}
	return tracked
}

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
	for cluster := range s.clusters {
		remains = append(remains, cluster.AdminURL)
	}
	remains = slices.AppendSeq(remains, maps.Keys(s.workloads))
	remains = slices.AppendSeq(remains, maps.Keys(s.owners))
	return strings.Join(remains, " ")
}

// Filter returns the matches in a listing of sorted names.
func (p Pattern) Filter(sorted []string) []string { return p.filter(sorted) }

// RecordBulk records a bulk answer as a poller does.
func RecordBulk(s *Store, cluster Cluster, sample BulkSample) []Confirmation {
	return (&Feed{store: s}).RecordBulk(cluster, sample)
}
