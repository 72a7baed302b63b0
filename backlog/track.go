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
	s.replace(before, after, one.tenant)
	one.tracks = after
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
func (s *jobs) replace(before, after tracks, tenant string) {
	added, removed := after.since(before)
	old, now := before.subscription, after.subscription
	if old.Bytes != now.Bytes || old.Pace != now.Pace {
		added, removed = after.topics, before.topics
	}
	for _, name := range added {
		s.acquireTopic(Topic{Cluster: now.Cluster, Name: name}, use{now.Name, now.Bytes, now.Pace, tenant})
	}
	s.acquireWorkload(now, tenant)
	for _, name := range removed {
		s.releaseTopic(Topic{Cluster: old.Cluster, Name: name}, use{old.Name, old.Bytes, old.Pace, tenant})
	}
	s.releaseWorkload(old, tenant)
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
		s.replace(one.tracks, tracks{}, one.tenant)
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

// use is a subscription of a topic for an owner.
type use struct {
	name   string
	bytes  bool // in bytes too
	pace   Pace
	tenant string
}

// acquireTopic tracks the subscription of one topic for an owner. New data is fetched at once, also bytes that were not
// needed before.
func (s *jobs) acquireTopic(key Topic, use use) {
	topic := s.topics[key]
	if topic == nil {
		topic = &topicState{subscriptions: map[string]*subscriptionState{}}
		s.topics[key] = topic
	}
	state := topic.subscriptions[use.name]
	if state == nil {
		state = &subscriptionState{}
		topic.subscriptions[use.name] = state
		s.change(TopicJob(key), true)
	}
	if state.tenants.add(use.tenant) {
		s.pairs[use.tenant]++
		s.change(TopicJob(key), false)
	}
	if use.bytes {
		if state.bytes++; state.bytes == 1 {
			s.change(TopicJob(key), true)
		}
	}
	s.count(key, use.pace, 1)
}

// count adds to or removes from the uses of a topic at a pace.
func (s *jobs) count(key Topic, pace Pace, more int32) {
	topic := s.topics[key]
	before := topic.uses.quickest()
	if topic.uses[pace] += more; topic.uses.quickest() != before {
		s.change(TopicJob(key), false)
	}
}

func (s *jobs) releaseTopic(key Topic, use use) {
	topic := s.topics[key]
	state := topic.subscriptions[use.name]
	if use.bytes {
		state.bytes--
	}
	s.count(key, use.pace, -1)
	if state.tenants.remove(use.tenant) {
		if s.pairs[use.tenant]--; s.pairs[use.tenant] == 0 {
			delete(s.pairs, use.tenant)
		}
		s.change(TopicJob(key), false)
	}
	if len(state.tenants) == 0 {
		delete(topic.subscriptions, use.name)
	}
	if len(topic.subscriptions) == 0 {
		delete(s.topics, key)
		s.change(TopicJob(key), false)
	}
}

// tenantNames are the tenants of the subscriptions of a topic, each once.
func tenantNames(subscriptions map[string]*subscriptionState) []string {
	var names []string
	for _, subscription := range subscriptions {
		for _, one := range subscription.tenants {
			if !slices.Contains(names, one.name) {
				names = append(names, one.name)
			}
		}
	}
	return names
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

// workloadState is a workload with tracked instances.
type workloadState struct {
	tenants tenants
	history instancesHistory
	failure error // why they did not answer the last time; nil after an answer
}

func (s *jobs) acquireWorkload(subscription Subscription, tenant string) {
	if subscription.Workload == nil {
		return
	}
	state := s.workloads[subscription.Workload]
	if state == nil {
		state = &workloadState{}
		s.workloads[subscription.Workload] = state
		s.change(WorkloadJob(subscription.Workload), true)
	}
	if state.tenants.add(tenant) {
		s.change(WorkloadJob(subscription.Workload), false)
	}
}

func (s *jobs) releaseWorkload(subscription Subscription, tenant string) {
	if subscription.Workload == nil {
		return
	}
	state := s.workloads[subscription.Workload]
	if !state.tenants.remove(tenant) {
		return
	}
	if len(state.tenants) == 0 {
		delete(s.workloads, subscription.Workload)
	}
	s.change(WorkloadJob(subscription.Workload), false)
}

// RecordInstances records an answer of the instances of a workload. Answers that are not newer than the last are
// dropped, and so are answers that are no longer tracked.
func (s *Store) RecordInstances(workload Workload, sample InstancesSample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.workloads[workload]; state != nil {
		state.history.add(sample, s.rateWindow, s.staleAfter)
		state.failure = nil
	}
}

// FailInstances records why a workload's instances could not be read. Their last answer stays in use until it is stale.
func (s *Store) FailInstances(workload Workload, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.workloads[workload]; state != nil {
		state.failure = reason
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
