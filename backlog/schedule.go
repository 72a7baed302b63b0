// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import "time"

// schedule says which topic is due when. It belongs to the Poller's loop and is not safe for concurrent use.
type schedule struct {
	topics   map[Topic]*slot
	inFlight map[Cluster]int
	version  uint64
}

// slot is one topic in the schedule.
type slot struct {
	due      time.Time
	failures int // in a row
	fetching bool
	gone     bool // no longer tracked while a fetch is under way
}

// follow takes over which topics are tracked. A new topic is due at once.
func (s *schedule) follow(store *Store, now time.Time) {
	tracked, version := store.trackedTopics(s.version)
	if version == s.version {
		return
	}
	s.version = version
	wanted := make(map[Topic]struct{}, len(tracked))
	for _, topic := range tracked {
		wanted[topic] = struct{}{}
		if existing := s.topics[topic]; existing != nil {
			existing.gone = false
			continue
		}
		s.topics[topic] = &slot{due: now}
	}
	for topic, existing := range s.topics {
		if _, still := wanted[topic]; still {
			continue
		}
		if existing.fetching {
			existing.gone = true
			continue
		}
		delete(s.topics, topic)
	}
}

// start returns the topics to fetch now and marks them as being fetched.
func (s *schedule) start(now time.Time, perCluster int) []Topic {
	var topics []Topic
	for topic, state := range s.topics {
		if state.fetching || state.due.After(now) || s.inFlight[topic.Cluster] >= perCluster {
			continue
		}
		state.fetching = true
		s.inFlight[topic.Cluster]++
		topics = append(topics, topic)
	}
	return topics
}

// finish takes in how a fetch ended.
func (s *schedule) finish(result fetched, now time.Time, delay func(failures int) time.Duration) {
	if s.inFlight[result.topic.Cluster]--; s.inFlight[result.topic.Cluster] == 0 {
		delete(s.inFlight, result.topic.Cluster)
	}
	state := s.topics[result.topic]
	if state.gone {
		delete(s.topics, result.topic)
		return
	}
	state.fetching = false
	if result.err == nil || Authoritative(result.err) {
		state.failures = 0 // Pulsar answers: ask again at the usual pace
	} else {
		state.failures++
	}
	state.due = now.Add(delay(state.failures))
}
