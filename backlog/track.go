// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"slices"
	"strings"
	"time"
)

// interest is what one owner tracks, see Owner.
type interest struct {
	subscription Subscription
	end          Moment[string] // of the owner's interest, if it has one
}

// Track makes the owner follow this subscription instead of its earlier one, until Untrack.
func (s *Store) Track(owner string, subscription Subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.track(owner, subscription, time.Time{})
}

// TrackUntil is Track for interest that ends unless it is renewed.
func (s *Store) TrackUntil(owner string, subscription Subscription, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.track(owner, subscription, until)
}

// track makes the owner follow the subscription until a time; zero for no end.
func (s *tracked) track(owner string, subscription Subscription, until time.Time) {
	one := s.owners[owner]
	if one == nil {
		one = &interest{end: Moment[string]{Element: owner}}
		s.owners[owner] = one
	}
	before := one.subscription
	one.subscription = subscription
	if until.IsZero() {
		s.expiries.Remove(&one.end)
	} else {
		s.expiries.Set(&one.end, until)
	}
	if before.Equal(subscription) {
		return
	}
	tenant := tenantOf(owner)
	s.acquire(subscription, tenant) // before the release, so that inputs of both keep their history
	s.release(before, tenant)
}

// Untrack ends the owner's interest.
func (s *Store) Untrack(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.untrack(owner)
}

func (s *tracked) untrack(owner string) {
	if one := s.owners[owner]; one != nil {
		delete(s.owners, owner)
		s.expiries.Remove(&one.end)
		s.release(one.subscription, tenantOf(owner))
	}
}

// Expire ends interest that was not renewed in time. It takes only a read lock while there is none.
func (s *Store) Expire(now time.Time) {
	s.mu.RLock()
	_, due := s.expiries.Due(now)
	s.mu.RUnlock()
	if !due {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for owner, due := s.expiries.Due(now); due; owner, due = s.expiries.Due(now) {
		s.untrack(owner)
	}
}

// use is a subscription of a topic or a pattern.
type use struct {
	name   string
	bytes  bool // in bytes too
	tenant string
}

func (s *tracked) acquire(subscription Subscription, tenant string) {
	subscription.each(tenant, s.acquireTopic, s.acquirePattern)
	s.acquireWorkload(subscription, tenant)
}

func (s *tracked) release(subscription Subscription, tenant string) {
	subscription.each(tenant, s.releaseTopic, s.releasePattern)
	s.releaseWorkload(subscription, tenant)
}

// each calls topic or pattern for each input.
func (s Subscription) each(tenant string, topic, pattern func(Topic, use)) {
	use := use{name: s.Name, bytes: s.Bytes, tenant: tenant}
	for _, name := range s.Topics {
		topic(Topic{Cluster: s.Cluster, Name: name}, use)
	}
	for _, text := range s.Patterns {
		pattern(Topic{Cluster: s.Cluster, Name: text}, use)
	}
}

// acquireTopic tracks the subscription of one topic, for an owner or a pattern. New data is fetched at once, including
// bytes that were not needed before.
func (s *jobs) acquireTopic(key Topic, use use) {
	topic := s.topics[key]
	if topic == nil {
		topic = &topicState{subscriptions: map[string]*subscriptionState{}}
		s.topics[key] = topic
		s.acquireCluster(key.Cluster)
	}
	if topic.tenants.add(use.tenant) {
		s.change(TopicJob(key), false)
	}
	state := topic.subscriptions[use.name]
	if state == nil {
		state = &subscriptionState{}
		topic.subscriptions[use.name] = state
		topic.quiet = quiet{} // it does not include this one
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
	if topic.tenants.remove(use.tenant) {
		s.change(TopicJob(key), false)
	}
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

// unmatch removes a pattern from the patterns of a topic, which may not exist.
func (s *jobs) unmatch(key, pattern Topic) {
	if topic := s.topics[key]; topic != nil {
		topic.patterns = slices.DeleteFunc(topic.patterns, func(p Topic) bool { return p == pattern })
	}
}

// Owner names who tracks a subscription: a Kubernetes namespace, whose owners share their turns, and a name in it.
func Owner(namespace, name string) string { return namespace + "/" + name }

// tenantOf is the namespace of an owner.
func tenantOf(owner string) string {
	namespace, _, _ := strings.Cut(owner, "/")
	return namespace
}

// tenants are the Kubernetes namespaces that ask for a job.
type tenants []tenant

// tenant is one of them, with the number of its interests in the job.
type tenant struct {
	name      string
	interests int
}

// add reports whether the tenant is a new one.
func (t *tenants) add(name string) bool {
	if i := t.index(name); i >= 0 {
		(*t)[i].interests++
		return false
	}
	*t = append(*t, tenant{name, 1})
	return true
}

// remove reports whether the tenant has no interest any more.
func (t *tenants) remove(name string) bool {
	i := t.index(name)
	if (*t)[i].interests--; (*t)[i].interests > 0 {
		return false
	}
	*t = slices.Delete(*t, i, i+1)
	return true
}

func (t *tenants) index(name string) int {
	return slices.IndexFunc(*t, func(one tenant) bool { return one.name == name })
}

func (t *tenants) names() []string {
	names := make([]string, len(*t))
	for i, one := range *t {
		names[i] = one.name
	}
	return names
}
