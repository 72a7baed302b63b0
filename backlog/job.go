// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import "time"

// JobKind is a kind of job that a poller fetches for a Store.
type JobKind uint8

// The kinds: a topic, a namespace's listing, a workload's instances, a cluster's bulk answer.
const (
	TopicKind JobKind = iota
	NamespaceKind
	WorkloadKind
	BulkKind
)

// Job is a periodic fetch of a poller.
type Job struct {
	Kind    JobKind
	Cluster Cluster // none for a workload
	Name    string  // none for a bulk answer
}

// TopicJob fetches a topic.
func TopicJob(t Topic) Job { return Job{Kind: TopicKind, Cluster: t.Cluster, Name: t.Name} }

// NamespaceJob lists a namespace.
func NamespaceJob(n Namespace) Job { return Job{Kind: NamespaceKind, Cluster: n.Cluster, Name: n.Name} }

// WorkloadJob reads the instances of a workload.
func WorkloadJob(name string) Job { return Job{Kind: WorkloadKind, Name: name} }

// BulkJob reads the bulk answer of a cluster.
func BulkJob(cluster Cluster) Job { return Job{Kind: BulkKind, Cluster: cluster} }

// Topic is the topic that the job fetches.
func (j Job) Topic() Topic { return Topic{Cluster: j.Cluster, Name: j.Name} }

// Namespace is the namespace that the job lists.
func (j Job) Namespace() Namespace { return Namespace{Cluster: j.Cluster, Name: j.Name} }

// Change is a change of a job for the schedule.
type Change struct {
	Job Job
	// Wanted is true if the job is needed now.
	Wanted bool
	// Soon is true if the job cannot wait until it is due.
	Soon bool
	// Tenants are the Kubernetes namespaces that ask for the job; none for a bulk answer.
	Tenants []string
}

// change records that a job was added, was removed, or cannot wait. mu is held.
func (s *jobs) change(j Job, soon bool) {
	unasked := j.Kind == WorkloadKind && !s.wanting.Instances || j.Kind == BulkKind && !s.wanting.Bulk
	if s.changed != nil && !unasked {
		s.changed[j] = s.changed[j] || soon
	}
}

// Extras are the jobs of a poller beyond topics and listings.
type Extras struct {
	Instances, Bulk bool
}

// Feed is the interface of a Store to its poller: the jobs, and what to request.
type Feed struct {
	store *Store
}

// Feed starts to record changes for a poller; the first changes are all existing jobs.
func (s *Store) Feed(wanting Extras) *Feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanting = wanting
	s.changed = make(map[Job]bool, len(s.topics))
	for topic := range s.topics {
		s.change(TopicJob(topic), true)
	}
	for namespace := range s.namespaces {
		s.change(NamespaceJob(namespace), true)
	}
	for workload := range s.workloads {
		s.change(WorkloadJob(workload), true)
	}
	for cluster := range s.clusters {
		s.change(BulkJob(cluster), false)
	}
	return &Feed{store: s}
}

// Changes returns the changes since its last call, in no order.
func (f *Feed) Changes() []Change {
	s := f.store
	s.mu.RLock()
	none := len(s.changed) == 0
	s.mu.RUnlock()
	if none {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := make([]Change, 0, len(s.changed))
	for j, soon := range s.changed {
		changes = append(changes, Change{Job: j, Wanted: s.wants(j), Soon: soon, Tenants: s.tenantsOf(j)})
	}
	s.changed = map[Job]bool{} // a cleared map would keep its size for good
	return changes
}

// StaleAfter is the maximum age of an answer that is served.
func (f *Feed) StaleAfter() time.Duration { return f.store.staleAfter }

// Tracks reports whether the topic is tracked, by its name without partition suffix, or a pattern matches it. Other
// topics of a bulk answer need not be kept.
func (s *Store) Tracks(topic Topic) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.wants(TopicJob(topic))
}

// tenantsOf are the Kubernetes namespaces that ask for the job. mu is held.
func (s *jobs) tenantsOf(j Job) []string {
	switch j.Kind {
	case TopicKind:
		if state := s.topics[j.Topic()]; state != nil {
			return tenantNames(state.subscriptions)
		}
	case WorkloadKind:
		if state := s.workloads[j.Name]; state != nil {
			return state.tenants.names()
		}
	case NamespaceKind:
		if state := s.namespaces[j.Namespace()]; state != nil {
			return state.tenants()
		}
	case BulkKind:
	}
	return nil
}

// wants reports whether the job is needed. mu is held.
func (s *jobs) wants(j Job) (wanted bool) {
	switch j.Kind {
	case TopicKind:
		_, wanted = s.topics[j.Topic()]
	case NamespaceKind:
		_, wanted = s.namespaces[j.Namespace()]
	case WorkloadKind:
		_, wanted = s.workloads[j.Name]
	case BulkKind:
		_, wanted = s.clusters[j.Cluster]
	}
	return wanted
}
