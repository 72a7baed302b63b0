// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Source implements backlog.Source. It may be used by several goroutines.
type Source struct {
	client *client
	counts *partitionCounts
	now    func() time.Time
}

var _ backlog.Source = (*Source)(nil)

// Close closes connections that are not in use.
func (s *Source) Close() { s.client.sessions.close() }

// Fetch reads the present state of a topic. Each of its up to four calls has Config.RequestTimeout.
func (s *Source) Fetch(ctx context.Context, topic backlog.Topic, detail backlog.Detail) (backlog.TopicSample, error) {
	a, err := topicAddress(topic)
	if err != nil {
		return backlog.TopicSample{}, err
	}
	count, cached := s.counts.lookup(topic, s.now())
	if !cached {
		if count, err = s.partitions(ctx, topic, a); err != nil {
			return backlog.TopicSample{}, err
		}
	}
	sample, err := s.stats(ctx, topic, a, count, detail)
	if err != nil && cached && disagrees(err) {
		if count, err = s.partitions(ctx, topic, a); err != nil {
			return backlog.TopicSample{}, err
		}
		sample, err = s.stats(ctx, topic, a, count, detail)
	}
	if err != nil {
		if disagrees(err) {
			s.counts.forget(topic)
		}
		return backlog.TopicSample{}, err
	}
	if detail.Has(backlog.Full) {
		s.addEntries(ctx, a, sample)
	}
	return sample, nil
}

// disagrees says that the answer may be wrong only because the number of partitions has changed since it was read.
func disagrees(err error) bool {
	return errors.Is(err, backlog.ErrTopicNotFound) || errors.Is(err, errFewerPartitions)
}

// partitions reads how many partitions the topic has and remembers it.
func (s *Source) partitions(ctx context.Context, topic backlog.Topic, a address) (count int, err error) {
	err = s.client.get(ctx, a, callPartitions, "", func(r io.Reader) (err error) {
		count, err = decodePartitions(r)
		return err
	})
	if err != nil {
		s.counts.forget(topic)
		return 0, err
	}
	s.counts.store(topic, count, s.now())
	return count, nil
}

// stats reads the topic, which has count partitions as far as is known.
func (s *Source) stats(ctx context.Context, topic backlog.Topic, a address, count int, detail backlog.Detail) (backlog.TopicSample, error) {
	call := callStats
	query := "getPreciseBacklog=false&subscriptionBacklogSize=false&getEarliestTimeInBacklog=false&excludePublishers=true" +
		"&excludeConsumers=" + strconv.FormatBool(!detail.Has(backlog.Full))
	if count > 0 {
		call = callPartitionedStats
		query += "&perPartition=true"
	}
	sample := backlog.TopicSample{At: s.now(), Detail: detail}
	err := s.client.get(ctx, a, call, query, func(r io.Reader) (err error) {
		if count > 0 {
			sample.Partitions, err = decodePartitionedStats(r, a.subject, count)
		} else {
			sample.Partitions, err = decodeStats(r)
		}
		return err
	})
	if err != nil {
		return backlog.TopicSample{}, err
	}
	if len(sample.Partitions) > count && count > 0 {
		s.counts.store(topic, len(sample.Partitions), s.now()) // partitions were added
	}
	return sample, nil
}

// addEntries adds the entry counters, as far as they can be had: without them the sample is still good, and the metric
// of the call tells why.
func (s *Source) addEntries(ctx context.Context, a address, sample backlog.TopicSample) {
	call := callPartitionedInternalStats
	if sample.Partitions[0].Index == backlog.NotPartitioned {
		call = callInternalStats
	}
	var entries map[int]int64
	err := s.client.get(ctx, a, call, "", func(r io.Reader) (err error) {
		if call == callInternalStats {
			entries, err = decodeAddedEntries(r)
		} else {
			entries, err = decodePartitionedAddedEntries(r, a.subject)
		}
		return err
	})
	if err != nil {
		return
	}
	for i := range sample.Partitions {
		if added, ok := entries[sample.Partitions[i].Index]; ok {
			sample.Partitions[i].AddedEntries = &added
		}
	}
}

// partitionCounts remembers how many partitions topics have.
type partitionCounts struct {
	ttl time.Duration

	mu sync.Mutex
	// counts and swept are guarded by mu.
	counts map[backlog.Topic]partitionCount
	swept  time.Time
}

type partitionCount struct {
	count int
	at    time.Time
}

func newPartitionCounts(ttl time.Duration) *partitionCounts {
	return &partitionCounts{ttl: ttl, counts: map[backlog.Topic]partitionCount{}}
}

func (p *partitionCounts) lookup(topic backlog.Topic, now time.Time) (count int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.counts[topic]
	if !ok || now.Sub(known.at) >= p.ttl {
		return 0, false
	}
	return known.count, true
}

// store also drops, once per ttl, what has expired: topics that nobody fetches any more.
func (p *partitionCounts) store(topic backlog.Topic, count int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[topic] = partitionCount{count: count, at: now}
	if now.Sub(p.swept) < p.ttl {
		return
	}
	p.swept = now
	for other, known := range p.counts {
		if now.Sub(known.at) >= p.ttl {
			delete(p.counts, other)
		}
	}
}

func (p *partitionCounts) forget(topic backlog.Topic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.counts, topic)
}
