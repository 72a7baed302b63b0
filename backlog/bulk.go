// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"slices"
	"strconv"
	"time"
)

// quiet is the last answer about a topic without a backlog. Bulk answers are compared with it. It is zero while there
// is a backlog.
type quiet struct {
	// partitions have only the tracked subscriptions, without their consumers.
	partitions []PartitionSample
	// detail of the answer, except for what is left out.
	detail Detail
	// since is when publishing stopped and the backlog became empty.
	since time.Time
}

// record records an answer about the topic itself.
func (q *quiet) record(sample TopicSample, tracked map[string]*subscriptionState) {
	partitions := make([]PartitionSample, 0, len(sample.Partitions))
	for _, p := range byIndex(sample.Partitions) {
		kept := PartitionSample{Index: p.Index, PublishedMessages: p.PublishedMessages, PublishedBytes: p.PublishedBytes}
		for _, subscription := range p.Subscriptions {
			if _, mine := tracked[subscription.Name]; mine && subscription.BacklogEntries == 0 {
				subscription.Consumers = nil
				kept.Subscriptions = append(kept.Subscriptions, subscription)
			}
		}
		if len(kept.Subscriptions) != len(tracked) || sample.Incomplete != nil {
			*q = quiet{}
			return
		}
		partitions = append(partitions, kept)
	}
	if !samePublished(q.partitions, partitions) {
		q.since = sample.At
	}
	q.partitions, q.detail = partitions, sample.Detail&(Bytes|Precise)
}

// samePublished reports whether nothing was published between two answers.
func samePublished(before, now []PartitionSample) bool {
	return slices.EqualFunc(before, now, func(a, b PartitionSample) bool {
		return a.Index == b.Index && a.PublishedMessages == b.PublishedMessages
	})
}

// confirmedBy reports whether a bulk answer shows the topic unchanged since its last answer: all partitions exist,
// nothing was published since, and every tracked subscription is empty and has a consumer everywhere.
func (q *quiet) confirmedBy(topic string, bulk BulkSample) bool {
	for _, p := range q.partitions {
		seen, there := bulk.Topics[partitionName(topic, p.Index)]
		if !there || seen.PublishedMessages != p.PublishedMessages {
			return false
		}
		for _, subscription := range p.Subscriptions {
			one, there := seen.Subscriptions[subscription.Name]
			if !there || one.BacklogEntries != 0 || one.Consumers < 1 {
				return false
			}
		}
	}
	_, more := bulk.Topics[partitionName(topic, len(q.partitions))]
	return len(q.partitions) > 0 && !more
}

func partitionName(topic string, index int) string {
	if index == NotPartitioned {
		return topic
	}
	return topic + "-partition-" + strconv.Itoa(index)
}

// Confirmation is a topic with a last reading that a bulk answer confirms.
type Confirmation struct {
	Topic Topic
	// At is when the reading was last confirmed.
	At time.Time
	// QuietSince is when publishing stopped and the backlog became empty.
	QuietSince time.Time
}

// bulkChunk bounds how long the store is locked for a bulk answer about 100 000 topics: at a few microseconds for each
// topic, half a millisecond at a time.
const bulkChunk = 100

// RecordBulk compares a bulk answer with the readings of the cluster's topics, and returns the topics with a last
// reading that it confirms. Nothing in it becomes a value; see the package comment. Bulk answers that are not newer
// than the last are dropped.
func (f *Feed) RecordBulk(cluster Cluster, sample BulkSample) []Confirmation {
	topics := f.beginBulk(cluster, sample.At)
	var confirmed []Confirmation
	for len(topics) > 0 {
		chunk := topics[:min(bulkChunk, len(topics))]
		topics = topics[len(chunk):]
		confirmed = f.confirm(chunk, sample, confirmed)
	}
	return confirmed
}

// beginBulk returns the topics that a bulk answer may confirm.
func (f *Feed) beginBulk(cluster Cluster, at time.Time) []Topic {
	s := f.store
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.clusters[cluster]
	if state == nil || !at.After(state.bulkAt) {
		return nil
	}
	state.bulkAt = at
	var topics []Topic
	for topic, t := range s.topics {
		if topic.Cluster == cluster && len(t.quiet.partitions) > 0 {
			topics = append(topics, topic)
		}
	}
	return topics
}

func (f *Feed) confirm(topics []Topic, sample BulkSample, confirmed []Confirmation) []Confirmation {
	s := f.store
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, topic := range topics {
		state := s.topics[topic]
		if state == nil || !state.confirm(topic.Name, sample, s.rateWindow, s.staleAfter) {
			continue
		}
		confirmed = append(confirmed, Confirmation{Topic: topic, At: state.answeredAt, QuietSince: state.quiet.since})
	}
	return confirmed
}

// confirm reports whether the bulk answer confirms the last reading. The reading then counts as of the bulk answer if
// that is later, as if an equal answer had been read. At the usual poll interval it is not later, since bulk answers
// are up to a minute old.
func (t *topicState) confirm(name string, sample BulkSample, window, staleAfter time.Duration) bool {
	later := sample.At.Sub(t.answeredAt)
	if t.failure != nil || later > staleAfter || !t.quiet.confirmedBy(name, sample) {
		return false
	}
	if later > 0 {
		t.record(TopicSample{At: sample.At, Detail: t.quiet.detail, Partitions: t.quiet.partitions}, window)
	}
	return true
}

// IsQuiet reports whether the topic had no backlog at its last answer.
func (f *Feed) IsQuiet(topic Topic) bool {
	s := f.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	state := s.topics[topic]
	return state != nil && len(state.quiet.partitions) > 0
}
