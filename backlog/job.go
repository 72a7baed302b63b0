// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

// kind of a job.
type kind uint8

const (
	topicKind kind = iota
	namespaceKind
	workloadKind
	bulkKind
)

// job is something that the Poller fetches again and again: a topic, a namespace's listing, a workload's instances, or
// a cluster's bulk answer.
type job struct {
	kind    kind
	cluster Cluster // none for a workload
	name    string  // none for a bulk answer
}

func topicJob(t Topic) job { return job{kind: topicKind, cluster: t.Cluster, name: t.Name} }

func (j job) topic() Topic { return Topic{Cluster: j.cluster, Name: j.name} }

func namespaceJob(n Namespace) job {
	return job{kind: namespaceKind, cluster: n.Cluster, name: n.Name}
}

func (j job) namespace() Namespace { return Namespace{Cluster: j.cluster, Name: j.name} }

func workloadJob(name string) job { return job{kind: workloadKind, name: name} }

// change is news of a job for the schedule.
type change struct {
	job job
	// wanted says that somebody needs it now.
	wanted bool
	// soon says that it cannot wait until it is due.
	soon bool
}

// change notes that a job came, went, or cannot wait. mu is held.
func (s *Store) change(j job, soon bool) {
	unasked := j.kind == workloadKind && !s.wanting.instances || j.kind == bulkKind && !s.wanting.bulk
	if s.changed != nil && !unasked {
		s.changed[j] = s.changed[j] || soon
	}
}

// attached says what a Poller fetches beyond topics.
type attached struct {
	instances, bulk bool
}

// attach begins to note changes for a Poller, and returns all jobs as changes.
func (s *Store) attach(wanting attached) []change {
	s.mu.Lock()
	s.wanting = wanting
	s.changed = make(map[job]bool, len(s.topics))
	for topic := range s.topics {
		s.change(topicJob(topic), true)
	}
	for namespace := range s.namespaces {
		s.change(namespaceJob(namespace), true)
	}
	for workload := range s.workloads {
		s.change(workloadJob(workload), true)
	}
	for cluster := range s.clusters {
		s.change(job{kind: bulkKind, cluster: cluster}, false)
	}
	s.mu.Unlock()
	return s.changes()
}

// changes returns what changed since it was last called, in no order.
func (s *Store) changes() []change {
	s.mu.RLock()
	none := len(s.changed) == 0
	s.mu.RUnlock()
	if none {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := make([]change, 0, len(s.changed))
	for j, soon := range s.changed {
		changes = append(changes, change{job: j, wanted: s.wants(j), soon: soon})
	}
	s.changed = map[job]bool{} // a cleared map would keep its size for good
	return changes
}

// Tracks says whether somebody tracks the topic, by its name without partition suffix, or a pattern matches it: what is
// worth keeping of a bulk answer.
func (s *Store) Tracks(topic Topic) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.wants(topicJob(topic))
}

// wants says whether somebody needs the job. mu is held.
func (s *Store) wants(j job) (wanted bool) {
	switch j.kind {
	case topicKind:
		_, wanted = s.topics[j.topic()]
	case namespaceKind:
		_, wanted = s.namespaces[j.namespace()]
	case workloadKind:
		_, wanted = s.workloads[j.name]
	case bulkKind:
		_, wanted = s.clusters[j.cluster]
	}
	return wanted
}
