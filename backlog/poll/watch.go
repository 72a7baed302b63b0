// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// A topic of which the first message wakes replicas has a job for each of its partitions that waits for a message: a
// fetch that lasts. The message wakes a replica, and an answer about the topic sizes the rest. The topic is fetched
// once the job sees new messages too, so that none is missed in between, and it keeps its interval meanwhile.

const (
	// maxWatch ends a job, so that others get its place in turn, and a broker that forgot it is noticed.
	maxWatch = 10 * time.Minute
	// maxWatchBackoff is the pause after watching failed for long, or was refused.
	maxWatchBackoff = 10 * time.Minute
	// refusals are the failures in a row that a refusal counts as.
	refusals = 9
	// After a message its topic is fetched. Where many topics get one at the same time, those are answerEvery apart, so
	// that they do not delay the replicas that other messages wake, and at most answerWithin late.
	answerEvery, answerWithin = 20 * time.Millisecond, 2 * time.Second
	// watchAgain is the pause after a message: the replica that it wakes usually ends the need to watch before.
	watchAgain = 10 * time.Second
)

// watched are the jobs of a topic's partitions.
type watched map[backlog.Job]watching

type watching struct {
	sees    bool  // new messages
	refused error // why only a user can make it see them
}

// isComplete reports whether no message can be missed.
func (w watched) isComplete() bool {
	for _, one := range w {
		if !one.sees {
			return false
		}
	}
	return len(w) > 0
}

// refused is why the first partition is not watched, by its name, that only a user can change; nil for none.
func (w watched) refused() (err error) {
	first := ""
	for j, one := range w {
		if one.refused != nil && (err == nil || j.Name < first) {
			err, first = one.refused, j.Name
		}
	}
	return err
}

// follow updates the jobs of a topic after an answer. Only partitions that the answer has are watched, so that no
// topic is created.
func (s *schedule) follow(topic backlog.Job, sample backlog.TopicSample, now time.Time) {
	one := s.slots[topic]
	if s.watches == 0 || one.unwanted || !one.pace.Wakes() || len(sample.Partitions) == 0 ||
		strings.HasPrefix(topic.Name, backlog.ScalableDomain) {
		return
	}
	one.empty = !slices.ContainsFunc(sample.Partitions, func(p backlog.PartitionSample) bool {
		return slices.ContainsFunc(p.Subscriptions, func(s backlog.SubscriptionSample) bool { return s.BacklogEntries > 0 })
	})
	exist := watched{}
	for _, p := range sample.Partitions {
		exist[watchJob(one.job, p.Index)] = watching{}
	}
	if sample.Incomplete == nil {
		s.unwatch(one, exist)
	}
	if one.watched == nil {
		one.watched = watched{}
	}
	var changes []backlog.Change
	for j := range exist {
		if !one.watches(j) {
			one.watched[j] = watching{}
		}
		changes = append(changes, backlog.Change{Job: j, Wanted: true, Soon: s.slots[j] == nil, Tenants: one.tenants})
	}
	s.apply(changes, now)
	for j := range exist {
		job := s.slots[j]
		if job.topic == nil || !job.topic.watches(j) {
			job.topic = one
		}
	}
}

// watches reports whether a job is one of the topic.
func (one *slot) watches(j backlog.Job) bool {
	_, does := one.watched[j]
	return does
}

// unwatch drops the jobs of a topic that it does not need. A job of another topic stays, since a partition may be
// tracked beside its topic: the first of the two has the job, and the other is polled as if it were not watched.
func (s *schedule) unwatch(one *slot, needed watched) {
	for j := range one.watched {
		if _, needs := needed[j]; needs {
			continue
		}
		delete(one.watched, j)
		if job := s.slots[j]; job != nil && job.topic == one {
			s.drop(job)
		}
	}
}

// watching records whether a job sees new messages, and makes its topic due, after a message in its turn.
func (s *schedule) watching(j backlog.Job, sees bool, now time.Time) {
	one := s.slots[j]
	if one == nil || one.unwanted {
		return
	}
	one.topic.watched[j] = watching{sees: sees}
	if sees {
		s.lines[laneOf(j)].recovered(one) // it keeps its place for minutes
	}
	due := now
	if one.message {
		due = now.Add(min(max(0, s.nextAnswer.Sub(now)), answerWithin))
		s.nextAnswer = due.Add(answerEvery)
	}
	s.hasten([]*slot{one.topic}, due)
	s.enqueue(now)
}

// wake records that a watch ended with a message, which wakes a replica.
func (p *Poller) wake(one *slot) {
	if one.unwanted {
		return
	}
	one.message = true
	topic := one.topic.job.Topic()
	p.feed.RecordMessage(topic)
	p.config.Updated(topic)
}

// watchJob watches a partition, which is named singly.
func watchJob(topic backlog.Job, index int) backlog.Job {
	j := backlog.Job{Kind: backlog.WatchKind, Cluster: topic.Cluster, Name: topic.Name}
	if index != backlog.NotPartitioned {
		j.Name += backlog.PartitionSuffix + strconv.Itoa(index)
	}
	return j
}

// recordPush records why brokers refuse to report messages of a topic, after a change of one of its jobs.
func (p *Poller) recordPush(job *slot) {
	if job != nil && job.topic != nil {
		p.config.Store.RecordPush(job.topic.job.Topic(), job.topic.watched.refused())
	}
}

// refusal is an error that only a user can end; nil for others.
func refusal(err error) error {
	for _, reason := range []error{
		backlog.ErrForbidden, backlog.ErrUnauthenticated, backlog.ErrHostNotAllowed, backlog.ErrUnsupported,
	} {
		if errors.Is(err, reason) {
			return err
		}
	}
	return nil
}
