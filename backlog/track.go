// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// interest is what one owner tracks, see Owner.
type interest struct {
	subscription Subscription
	tenant       string
	number       uint64 // of the owners until now
	tracks       tracks
	// refused is why it tracks nothing, see Bounds; nil if it does.
	refused error
}

// compare orders by age.
func (i *interest) compare(other *interest) int { return cmp.Compare(i.number, other.number) }

// tracks are the jobs of an interest: the topics of the subscription with the matches of its patterns, sorted and
// distinct, and its workload.
type tracks struct {
	subscription Subscription
	topics       []string
}

// Track makes the owner follow this subscription instead of its earlier one, until Untrack.
func (s *Store) Track(owner string, subscription Subscription) {
	s.TrackUntil(owner, subscription, time.Time{})
}

// TrackUntil is Track for interest that ends then unless it is renewed; zero for no end. One that was refused may fit
// now.
func (s *Store) TrackUntil(owner string, subscription Subscription, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.owners[owner]
	if one == nil {
		s.ownersUntilNow++
		one = &interest{number: s.ownersUntilNow, tenant: tenantOf(owner)}
		s.owners[owner] = one
	}
	delete(s.ends, owner)
	if !until.IsZero() {
		s.ends[owner] = until
	}
	if before := one.subscription; !before.Equal(subscription) {
		s.follow(one, subscription)
		s.unfollow(one, before, subscription)
		one.subscription = subscription
	} else if one.refused == nil {
		return
	}
	s.update(one)
}

// update tracks what an interest needs now instead of what it needed before, or nothing if that exceeds a bound.
func (s *tracked) update(one *interest) {
	topics, tooMany := s.topicsOf(one.subscription)
	before, after := one.tracks, tracks{one.subscription, topics}
	if one.refused = s.bounds.refuseSubscription(after, tooMany); one.refused == nil {
		one.refused = s.bounds.refuseNamespace(after, s.pairs[one.tenant], s.pairsAfter(one.tenant, before, after))
	}
	if one.refused != nil {
		after = tracks{}
	}
	one.tracks = after
	s.replace(one, before)
}

// topicsOf are the topics of a subscription and the matches of its patterns, sorted and distinct, without those of a
// pattern that has too many.
func (s *tracked) topicsOf(subscription Subscription) (topics []string, tooMany bool) {
	topics = subscription.Topics
	for _, text := range subscription.Patterns {
		state := s.patterns[Topic{Cluster: subscription.Cluster, Name: text}]
		switch {
		case state == nil:
		case state.tooMany:
			return topics, true
		case len(state.matched) > 0:
			topics = slices.Concat(topics, state.matched)
			slices.Sort(topics)
			topics = slices.Compact(topics)
		}
	}
	return topics, false
}

// replace acquires what is new before it releases what is not needed any more, so that what stays keeps its history.
func (s *jobs) replace(one *interest, before tracks) {
	added, removed := one.tracks.since(before)
	old, now := before.subscription, one.tracks.subscription
	for _, name := range added {
		s.acquireTopic(Topic{Cluster: now.Cluster, Name: name}, one)
	}
	for _, name := range removed {
		s.releaseTopic(Topic{Cluster: old.Cluster, Name: name}, old.Name, one)
	}
	if old.Bytes != now.Bytes || old.Pace != now.Pace {
		for _, name := range one.tracks.topics {
			s.need(Topic{Cluster: now.Cluster, Name: name})
		}
	}
	if old.Workload != now.Workload {
		s.acquireWorkload(now.Workload, one)
		s.releaseWorkload(old.Workload, one)
	}
}

// since are the topics that only these and only the earlier ones have, for one subscription.
func (t tracks) since(before tracks) (added, removed []string) {
	if t.subscription.Cluster != before.subscription.Cluster || t.subscription.Name != before.subscription.Name {
		return t.topics, before.topics
	}
	return difference(before.topics, t.topics)
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
		delete(s.ends, owner)
		s.unfollow(one, one.subscription, Subscription{})
		before := one.tracks
		one.tracks = tracks{}
		s.replace(one, before)
	}
}

// Expire ends interest that was not renewed in time.
func (s *Store) Expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for owner, end := range s.ends {
		if !end.After(now) {
			s.untrack(owner)
		}
	}
}

// acquireTopic tracks the subscription of one topic for an interest. New data is fetched at once.
func (s *jobs) acquireTopic(key Topic, one *interest) {
	topic := s.topics[key]
	if topic == nil {
		topic = &topicState{subscriptions: map[string]*subscriptionState{}}
		s.topics[key] = topic
	}
	name := one.tracks.subscription.Name
	state := topic.subscriptions[name]
	if state == nil {
		state = &subscriptionState{}
		topic.subscriptions[name] = state
		s.change(TopicJob(key), true)
	}
	if state.interests.add(one) {
		s.pairs[one.tenant]++
		s.change(TopicJob(key), false)
	}
	s.need(key)
}

// need updates how often a topic is needed, and which of its subscriptions are in bytes too. Bytes that were not needed
// before are fetched at once.
func (s *jobs) need(key Topic) {
	topic, pace := s.topics[key], AtRest
	for _, state := range topic.subscriptions {
		before := state.bytes
		state.bytes = false
		for _, one := range state.interests {
			pace = max(pace, one.tracks.subscription.Pace)
			state.bytes = state.bytes || one.tracks.subscription.Bytes
		}
		if state.bytes && !before {
			s.change(TopicJob(key), true)
		}
	}
	if pace != topic.pace {
		topic.pace = pace
		s.change(TopicJob(key), false)
	}
}

func (s *jobs) releaseTopic(key Topic, subscription string, one *interest) {
	topic := s.topics[key]
	state := topic.subscriptions[subscription]
	if state.interests.remove(one) {
		if s.pairs[one.tenant]--; s.pairs[one.tenant] == 0 {
			delete(s.pairs, one.tenant)
		}
		s.change(TopicJob(key), false)
	}
	if len(state.interests) == 0 {
		delete(topic.subscriptions, subscription)
	}
	s.need(key)
	if len(topic.subscriptions) == 0 {
		delete(s.topics, key)
	}
}

// Owner names who tracks a subscription: a Kubernetes namespace, whose owners share their turns, and a name in it.
func Owner(namespace, name string) string { return namespace + "/" + name }

// tenantOf is the namespace of an owner.
func tenantOf(owner string) string {
	namespace, _, _ := strings.Cut(owner, "/")
	return namespace
}

// interests are those in a job, or in the matches of a pattern.
type interests []*interest

// add reports whether it is the first one of its tenant.
func (i *interests) add(one *interest) bool {
	*i = append(*i, one)
	return i.of(one.tenant) == 1
}

// remove reports whether it was the last one of its tenant.
func (i *interests) remove(one *interest) bool {
	*i = slices.DeleteFunc(*i, func(other *interest) bool { return other == one })
	return i.of(one.tenant) == 0
}

// of is the number of those of a tenant.
func (i interests) of(tenant string) int {
	count := 0
	for _, one := range i {
		if one.tenant == tenant {
			count++
		}
	}
	return count
}

// appendTenants adds the Kubernetes namespaces that are not among the names.
func (i interests) appendTenants(names []string) []string {
	for _, one := range i {
		if !slices.Contains(names, one.tenant) {
			names = append(names, one.tenant)
		}
	}
	return names
}

// workloadState is a workload with tracked instances.
type workloadState struct {
	interests interests
	history   instancesHistory
	failure   error // why they did not answer the last time; nil after an answer
}

func (s *jobs) acquireWorkload(workload Workload, one *interest) {
	if workload == nil {
		return
	}
	state := s.workloads[workload]
	if state == nil {
		state = &workloadState{}
		s.workloads[workload] = state
		s.change(WorkloadJob(workload), true)
	}
	if state.interests.add(one) {
		s.change(WorkloadJob(workload), false)
	}
}

func (s *jobs) releaseWorkload(workload Workload, one *interest) {
	if workload == nil {
		return
	}
	state := s.workloads[workload]
	if state.interests.remove(one) {
		s.change(WorkloadJob(workload), false)
	}
	if len(state.interests) == 0 {
		delete(s.workloads, workload)
	}
}

// RecordInstances records an answer of the instances of a workload. Answers that are not newer than the last are
// dropped, and so are answers that are no longer tracked. After a failure the last one stays in use until it is stale.
func (s *Store) RecordInstances(workload Workload, sample InstancesSample, failure error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.workloads[workload]; state != nil {
		if state.failure = failure; failure == nil {
			state.history.add(sample, s.rateWindow, s.staleAfter)
		}
	}
}

// readInstances returns the state of the instances of a workload. It never fails, since the subscription is known
// without it. mu is held.
func (s *tracked) readInstances(workload Workload, consumers Measurement, now time.Time) InstancesReading {
	if workload == nil {
		return unknownInstances(ErrNotRequested)
	}
	state := s.workloads[workload]
	switch {
	case state == nil:
		return unknownInstances(fmt.Errorf("%w: instances of %s", ErrNotTracked, workload))
	case state.history.at.IsZero() && state.failure != nil:
		return unknownInstances(state.failure)
	case state.history.at.IsZero() && !s.instances:
		return unknownInstances(ErrNotRequested)
	case state.history.at.IsZero():
		return unknownInstances(fmt.Errorf("%w: the first answer of the instances of %s is under way", ErrNoData, workload))
	case now.Sub(state.history.at) > s.staleAfter:
		r := unknownInstances(staleError(state.history.at, state.failure))
		r.At = state.history.at
		return r
	}
	return state.history.read(consumers)
}
