// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"container/heap"
	"slices"
	"time"
)

// interest is what one owner tracks.
type interest struct {
	owner        string
	subscription Subscription
	until        time.Time // zero: until it is untracked
	index        int       // among the expiries, while it has an end
}

// Track makes the owner follow this subscription, instead of whatever it followed before, until Untrack.
func (s *Store) Track(owner string, subscription Subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.track(owner, subscription, time.Time{})
}

// TrackUntil is Track for interest that ends by itself when it is not renewed.
func (s *Store) TrackUntil(owner string, subscription Subscription, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.track(owner, subscription, until)
}

// track makes the owner follow the subscription until then; zero for no end.
func (s *tracking) track(owner string, subscription Subscription, until time.Time) {
	wanted := s.owners[owner]
	if wanted == nil {
		wanted = &interest{owner: owner}
		s.owners[owner] = wanted
	}
	before := wanted.subscription
	wanted.subscription = subscription
	s.end(wanted, until)
	if before.Equal(subscription) {
		return
	}
	s.acquire(subscription) // before the release, so that what both name keeps its history
	s.release(before)
}

// Untrack ends the owner's interest.
func (s *Store) Untrack(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.untrack(owner)
}

func (s *tracking) untrack(owner string) {
	if i := s.owners[owner]; i != nil {
		s.end(i, time.Time{})
		delete(s.owners, owner)
		s.release(i.subscription)
	}
}

// end sets when the interest ends; zero for never.
func (s *interests) end(i *interest, until time.Time) {
	before := i.until
	i.until = until
	switch {
	case before.IsZero() && until.IsZero():
	case before.IsZero():
		heap.Push(&s.expiries, i)
	case until.IsZero():
		heap.Remove(&s.expiries, i.index)
	default:
		heap.Fix(&s.expiries, i.index)
	}
}

// Expire ends interest that was not renewed in time. It costs next to nothing while there is none.
func (s *Store) Expire(now time.Time) {
	s.mu.RLock()
	idle := len(s.expiries) == 0 || !now.After(s.expiries[0].until)
	s.mu.RUnlock()
	if idle {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.expiries) > 0 && now.After(s.expiries[0].until) {
		s.untrack(s.expiries[0].owner)
	}
}

// expiries are the interests that have an end, the earliest first.
type expiries []*interest

func (e expiries) Len() int           { return len(e) }
func (e expiries) Less(i, j int) bool { return e[i].until.Before(e[j].until) }

func (e expiries) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].index, e[j].index = i, j
}

// Push and Pop are for package heap.
func (e *expiries) Push(x any) {
	one := x.(*interest)
	one.index = len(*e)
	*e = append(*e, one)
}

// Pop removes the last one.
func (e *expiries) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*e = old[:len(old)-1]
	return last
}

// use is a subscription as a topic or a pattern knows it.
type use struct {
	name  string
	bytes bool // in bytes too
}

func (s *patternTable) acquire(subscription Subscription) {
	use := use{name: subscription.Name, bytes: subscription.Bytes}
	for _, name := range subscription.Topics {
		s.acquireTopic(Topic{Cluster: subscription.Cluster, Name: name}, use)
	}
	for _, text := range subscription.Patterns {
		s.acquirePattern(Topic{Cluster: subscription.Cluster, Name: text}, use)
	}
	s.acquireWorkload(subscription)
}

func (s *patternTable) release(subscription Subscription) {
	use := use{name: subscription.Name, bytes: subscription.Bytes}
	for _, name := range subscription.Topics {
		s.releaseTopic(Topic{Cluster: subscription.Cluster, Name: name}, use)
	}
	for _, text := range subscription.Patterns {
		s.releasePattern(Topic{Cluster: subscription.Cluster, Name: text}, use)
	}
	s.releaseWorkload(subscription)
}

// acquireTopic tracks the subscription of one topic, for an owner or a pattern. What nothing is known of yet is fetched
// at once, bytes that were not needed before among it.
func (s *jobs) acquireTopic(key Topic, use use) {
	topic := s.topics[key]
	if topic == nil {
		topic = &topicState{subscriptions: map[string]*subscriptionState{}}
		s.topics[key] = topic
		s.acquireCluster(key.Cluster)
	}
	state := topic.subscriptions[use.name]
	if state == nil {
		state = &subscriptionState{}
		topic.subscriptions[use.name] = state
		topic.quiet = quiet{} // it knows nothing of this one
		s.change(TopicJob(key), true)
	}
	state.owners++
	if use.bytes {
		if state.bytes++; state.bytes == 1 {
			topic.quiet = quiet{} // it has no bytes to confirm
			s.change(TopicJob(key), true)
		}
	}
}

func (s *jobs) releaseTopic(key Topic, use use) {
	topic := s.topics[key]
	state := topic.subscriptions[use.name]
	if use.bytes {
		state.bytes--
	}
	if state.owners--; state.owners == 0 {
		delete(topic.subscriptions, use.name)
	}
	if len(topic.subscriptions) == 0 {
		delete(s.topics, key)
		s.change(TopicJob(key), false)
		s.releaseCluster(key.Cluster)
	}
}

func (s *jobs) acquireCluster(key Cluster) {
	cluster := s.clusters[key]
	if cluster == nil {
		cluster = &clusterState{}
		s.clusters[key] = cluster
		s.change(BulkJob(key), false)
	}
	cluster.topics++
}

func (s *jobs) releaseCluster(key Cluster) {
	cluster := s.clusters[key]
	if cluster.topics--; cluster.topics == 0 {
		delete(s.clusters, key)
		s.change(BulkJob(key), false)
	}
}

// unmatch removes a pattern from those that match a topic, which may be gone.
func (s *jobs) unmatch(key, pattern Topic) {
	if topic := s.topics[key]; topic != nil {
		topic.patterns = slices.DeleteFunc(topic.patterns, func(p Topic) bool { return p == pattern })
	}
}
