// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// postpone delays the fetch of topics that a bulk answer confirmed, once they have been quiet for long enough that no
// decision about them is pending. Postponed topics that are no longer confirmed are fetched at once.
func (p *Poller) postpone(s *schedule, result fetched, now time.Time) {
	before := s.postponed[result.job.Cluster]
	changed := make(map[*slot]struct{}, len(before))
	for one := range before {
		changed[one] = struct{}{}
	}
	for _, c := range result.confirmed {
		one := s.slots[backlog.TopicJob(c.Topic)]
		if one == nil || c.At.Sub(c.QuietSince) < p.config.QuietInterval {
			continue
		}
		delete(changed, one)
		s.postpone(one.job, p.postponedUntil(one, c, now))
	}
	soon := make([]*slot, 0, len(changed))
	for one := range changed {
		soon = append(soon, one)
	}
	s.hasten(soon, now)
}

// postponeAgain delays a postponed topic until the next bulk answer, if its own answer was quiet and the bulk answer is
// not late.
func (p *Poller) postponeAgain(s *schedule, j backlog.Job, now time.Time) {
	one := s.slots[j]
	if one == nil || !one.wasPostponed {
		return
	}
	one.wasPostponed = false
	bulk := s.slots[backlog.BulkJob(j.Cluster)]
	if bulk == nil || !one.due.After(now) || !p.feed.IsQuiet(j.Topic()) {
		return
	}
	due := bulk.goodAt.Add(p.config.BulkInterval * 5 / 4)
	if fresh := p.staleDeadline(now); fresh.Before(due) {
		due = fresh
	}
	s.postpone(j, due)
}

// staleDeadline is when a topic has to be read again, before a reading of the given time becomes stale.
func (p *Poller) staleDeadline(at time.Time) time.Time {
	return at.Add(p.feed.StaleAfter() - p.config.Interval - p.config.Timeout)
}

// postponedUntil is when a confirmed topic is read again if no other bulk answer confirms it: within QuietInterval of
// the last time, and well before it is stale. Many topics are confirmed at once, so the last quarter of the delay is
// spread.
func (p *Poller) postponedUntil(one *slot, c backlog.Confirmation, now time.Time) time.Time {
	due := one.goodAt.Add(p.config.QuietInterval)
	if fresh := p.staleDeadline(c.At); fresh.Before(due) {
		due = fresh
	}
	return due.Add(-time.Duration(p.config.Jitter() * float64(due.Sub(now)) / 4))
}
