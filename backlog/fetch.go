// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"context"
	"fmt"
	"time"
)

// fetched is how one fetch ended.
type fetched struct {
	job       job
	err       error
	confirmed []Confirmation // by a bulk answer
}

// fetch does one job, and tells the store and whoever listens. A fetch that ends because the program does says nothing.
func (p *Poller) fetch(ctx context.Context, j job) fetched {
	timed, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	result := fetched{job: j}
	var news []Topic
	switch j.kind {
	case topicKind:
		result.err = p.fetchTopic(ctx, timed, j.topic())
		news = []Topic{j.topic()}
	case namespaceKind:
		result.err = p.fetchListing(ctx, timed, j.namespace())
		news = p.config.Store.patternsIn(j.namespace())
	case workloadKind:
		result.err = p.fetchInstances(ctx, timed, j.name)
		news = p.config.Store.workloadInputs(j.name)
	case bulkKind:
		sample, err := p.config.Bulk.FetchBulk(timed, j.cluster)
		if result.err = err; err == nil {
			result.confirmed = p.config.Store.RecordBulk(j.cluster, sample)
		}
		for _, confirmation := range result.confirmed {
			news = append(news, confirmation.Topic)
		}
	}
	if ctx.Err() != nil {
		return result
	}
	for _, input := range news {
		p.config.Updated(input)
	}
	return result
}

func (p *Poller) fetchTopic(ctx, timed context.Context, topic Topic) error {
	sample, err := p.config.Source.Fetch(timed, topic, p.config.Store.nextDetail(topic, time.Now()))
	switch {
	case err == nil:
		p.config.Store.Record(topic, sample)
	case ctx.Err() == nil:
		p.config.Store.Fail(topic, err)
	}
	return err
}

func (p *Poller) fetchListing(ctx, timed context.Context, namespace Namespace) error {
	at := time.Now()
	topics, err := p.list(timed, namespace)
	switch {
	case err == nil:
		p.config.Store.RecordListing(namespace, topics, at)
	case ctx.Err() == nil:
		p.config.Store.FailListing(namespace, err)
	}
	return err
}

func (p *Poller) list(ctx context.Context, namespace Namespace) ([]string, error) {
	if p.config.Lister == nil {
		return nil, fmt.Errorf("%w: topic patterns in namespace %s: this program lists no namespaces; name the topics",
			ErrUnsupported, namespace.Name)
	}
	return p.config.Lister.List(ctx, namespace)
}

func (p *Poller) fetchInstances(ctx, timed context.Context, workload string) error {
	sample, err := p.config.Instances.FetchInstances(timed, workload)
	switch {
	case err == nil:
		p.config.Store.RecordInstances(workload, sample)
	case ctx.Err() == nil:
		p.config.Store.FailInstances(workload, err)
	}
	return err
}

// postpone lets topics that a bulk answer confirmed wait for their own fetch, once they have been quiet for long enough
// that whatever was to be decided about them is decided; those that waited and are no longer confirmed are fetched at
// once.
func (p *Poller) postpone(s *schedule, result fetched, now time.Time) {
	before := s.postponed[result.job.cluster]
	changed := make(map[*slot]struct{}, len(before))
	for one := range before {
		changed[one] = struct{}{}
	}
	for _, c := range result.confirmed {
		one := s.slots[topicJob(c.Topic)]
		if one == nil || c.At.Sub(c.QuietSince) < p.config.QuietInterval {
			continue
		}
		delete(changed, one)
		s.postpone(one.job, p.latest(one, c, now))
	}
	soon := make([]*slot, 0, len(changed))
	for one := range changed {
		soon = append(soon, one)
	}
	s.hasten(soon, now)
}

// postponeAgain lets a topic that waited for its fetch, and was found quiet, wait for the next bulk answer too, if that
// is not late.
func (p *Poller) postponeAgain(s *schedule, j job, now time.Time) {
	one := s.slots[j]
	if one == nil || !one.spared {
		return
	}
	one.spared = false
	bulk := s.slots[job{kind: bulkKind, cluster: j.cluster}]
	if bulk == nil || !one.due.After(now) || !p.config.Store.isQuiet(j.topic()) {
		return
	}
	due := bulk.goodAt.Add(p.config.BulkInterval * 5 / 4)
	if fresh := p.mustRead(now); fresh.Before(due) {
		due = fresh
	}
	s.postpone(j, due)
}

// mustRead is when a topic has to be read again lest a reading of the given time becomes stale.
func (p *Poller) mustRead(at time.Time) time.Time {
	return at.Add(p.config.Store.staleAfter - p.config.Interval - p.config.Timeout)
}

// latest is when a confirmed topic is read again if no further bulk answer confirms it: within QuietInterval of the last
// time, and in good time before it is stale. Many are confirmed at once, so the last quarter of the wait is spread.
func (p *Poller) latest(one *slot, c Confirmation, now time.Time) time.Time {
	due := one.goodAt.Add(p.config.QuietInterval)
	if fresh := p.mustRead(c.At); fresh.Before(due) {
		due = fresh
	}
	return due.Add(-time.Duration(p.config.Jitter() * float64(due.Sub(now)) / 4))
}
