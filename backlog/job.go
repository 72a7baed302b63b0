// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import "time"

// JobKind is one of the things that a poller fetches for a Store.
type JobKind uint8

// What a poller fetches: a topic, a namespace's listing, a workload's instances, a cluster's bulk answer.
const (
	TopicKind JobKind = iota
	NamespaceKind
	WorkloadKind
	BulkKind
)

// Job is something that a poller fetches again and again.
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

// Topic that the job fetches.
func (j Job) Topic() Topic { return Topic{Cluster: j.Cluster, Name: j.Name} }

// Namespace that the job lists.
func (j Job) Namespace() Namespace { return Namespace{Cluster: j.Cluster, Name: j.Name} }

// Change is news of a job for the schedule.
type Change struct {
	Job Job
	// Wanted says that the job is needed now.
	Wanted bool
	// Soon says that it cannot wait until it is due.
	Soon bool
}

// change notes that a job came, went, or cannot wait. mu is held.
func (s *jobs) change(j Job, soon bool) {
	unasked := j.Kind == WorkloadKind && !s.wanting.Instances || j.Kind == BulkKind && !s.wanting.Bulk
	if s.changed != nil && !unasked {
		s.changed[j] = s.changed[j] || soon
	}
}

// Extras says what a poller fetches beyond topics and listings.
type Extras struct {
	Instances, Bulk bool
}

// Feed is the side of a Store that its poller uses: which jobs there are, and what to request.
type Feed struct {
	store *Store
}

// Feed begins to note changes for a poller; the first ones are all jobs that there are.
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

// Changes returns what changed since it was last called, in no order.
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
		changes = append(changes, Change{Job: j, Wanted: s.wants(j), Soon: soon})
	}
	s.changed = map[Job]bool{} // a cleared map would keep its size for good
	return changes
}

// StaleAfter is how old an answer may get before it is no longer served.
func (f *Feed) StaleAfter() time.Duration { return f.store.staleAfter }

// Tracks says whether the topic is tracked, by its name without partition suffix, or a pattern matches it: what is
// worth keeping of a bulk answer.
func (s *Store) Tracks(topic Topic) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.wants(TopicJob(topic))
}

// wants says whether the job is needed. mu is held.
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
