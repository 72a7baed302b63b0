// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import "time"

// JobKind is a kind of job that a poller fetches for a Store.
type JobKind uint8

// The kinds: a topic, a namespace's listing, a workload's instances. WatchKind, the next message of a partition, is the
// poller's own.
const (
	TopicKind JobKind = iota
	NamespaceKind
	WorkloadKind
	WatchKind
)

// Job is a periodic fetch of a poller.
type Job struct {
	Kind    JobKind
	Cluster Cluster
	Name    string
	// Workload is set instead for a WorkloadKind.
	Workload Workload
}

// TopicJob fetches a topic.
func TopicJob(t Topic) Job { return Job{Kind: TopicKind, Cluster: t.Cluster, Name: t.Name} }

// NamespaceJob lists a namespace.
func NamespaceJob(n Namespace) Job { return Job{Kind: NamespaceKind, Cluster: n.Cluster, Name: n.Name} }

// WorkloadJob reads the instances of a workload.
func WorkloadJob(of Workload) Job { return Job{Kind: WorkloadKind, Workload: of} }

// Topic is the topic that the job fetches, or the partition that it watches.
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
	// Pace of a topic is that of the owner that needs it most often.
	Pace Pace
	// Tenants are the Kubernetes namespaces that ask for the job.
	Tenants []string
}

// change records that a job was added, was removed, or cannot wait. mu is held.
func (s *jobs) change(j Job, soon bool) {
	if s.changed != nil && (j.Kind != WorkloadKind || s.instances) {
		s.changed[j] = s.changed[j] || soon
	}
}

// Feed is the interface of a Store to its poller: the jobs, and what to request.
type Feed Store

// Feed starts to record changes for a poller, which reads instances or does not; the first changes are all existing
// jobs.
func (s *Store) Feed(instances bool) *Feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instances = instances
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
	return (*Feed)(s)
}

// Changes returns the changes since its last call, in no order.
func (s *Feed) Changes() []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := make([]Change, 0, len(s.changed))
	for j, soon := range s.changed {
		changes = append(changes, s.describe(j, soon))
	}
	s.changed = map[Job]bool{} // a cleared map would keep its size for good
	return changes
}

// Pace is how often an owner needs its topics. A higher one is more often.
type Pace int8

// The paces: every RestInterval, every interval of the poller, and every QuickInterval. Waking is Usual for a topic of
// which the first message wakes replicas, and so does Quick.
const (
	AtRest Pace = iota - 1
	Usual
	Waking
	Quick
)

// Wakes reports whether the first message wakes replicas.
func (p Pace) Wakes() bool { return p >= Waking }

const (
	// RestInterval is the time between two answers about a topic at rest, if an answer stays valid for twice as long.
	RestInterval = 30 * time.Second
	// QuickInterval is the time between two answers about a topic of which the messages wait for the next answer.
	QuickInterval = 2 * time.Second
)

// RestInterval is the time between two answers about a topic at rest: if a fetch fails, the next one is still in time.
func (s *Feed) RestInterval() time.Duration { return min(RestInterval, s.staleAfter/2) }

// describe is the change of a job. mu is held.
func (s *jobs) describe(j Job, soon bool) Change {
	c := Change{Job: j, Soon: soon}
	switch j.Kind {
	case TopicKind:
		if state := s.topics[j.Topic()]; state != nil {
			c.Wanted, c.Pace = true, state.pace
			for _, subscription := range state.subscriptions {
				c.Tenants = subscription.interests.appendTenants(c.Tenants)
			}
		}
	case NamespaceKind:
		if state := s.namespaces[j.Namespace()]; state != nil {
			c.Wanted = true
			for _, pattern := range state.patterns {
				c.Tenants = pattern.interests.appendTenants(c.Tenants)
			}
		}
	case WorkloadKind:
		if state := s.workloads[j.Workload]; state != nil {
			c.Wanted, c.Tenants = true, state.interests.appendTenants(nil)
		}
	case WatchKind:
	}
	return c
}
