// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import "time"

// schedule says which topic is due when. It belongs to the Poller's loop and is not safe for concurrent use.
type schedule struct {
	topics   map[Topic]*slot
	waiting  map[Cluster][]Topic // due, in the order in which they became due, for want of a free place
	inFlight map[Cluster]int
	version  uint64
}

func newSchedule() *schedule {
	return &schedule{topics: map[Topic]*slot{}, waiting: map[Cluster][]Topic{}, inFlight: map[Cluster]int{}}
}

// slot is one topic in the schedule.
type slot struct {
	due      time.Time
	failures int  // in a row
	busy     bool // waiting for a place, or being fetched
	gone     bool // no longer tracked, while busy
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
		if existing.busy {
			existing.gone = true
			continue
		}
		delete(s.topics, topic)
	}
}

// enqueue lines up what is due. It looks at every topic, so it is called once a tick and not once a fetch.
func (s *schedule) enqueue(now time.Time) {
	for topic, state := range s.topics {
		if !state.busy && !state.due.After(now) {
			state.busy = true
			s.waiting[topic.Cluster] = append(s.waiting[topic.Cluster], topic)
		}
	}
}

// start returns the topics to fetch now: as many of each cluster as have a place.
func (s *schedule) start(perCluster int) []Topic {
	var topics []Topic
	for cluster, waiting := range s.waiting {
		places := min(perCluster-s.inFlight[cluster], len(waiting))
		if places <= 0 {
			continue
		}
		topics = append(topics, waiting[:places]...)
		s.inFlight[cluster] += places
		if s.waiting[cluster] = waiting[places:]; len(s.waiting[cluster]) == 0 {
			delete(s.waiting, cluster)
		}
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
	state.busy = false
	if result.err == nil || Authoritative(result.err) {
		state.failures = 0 // Pulsar answers: ask again at the usual pace
	} else {
		state.failures++
	}
	state.due = now.Add(delay(state.failures))
}
