// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"slices"
	"time"
)

// Partitions returns what is known of each partition of the topics that a reading of the subscription sums up, topic by
// topic in the order of their indices. It fails when Read does.
//
// What it answers from is kept for Read anyway, which sums partitions: about 370 bytes for a subscription on a
// partition where the window has three answers, and 48 for each one more.
func (s *Store) Partitions(subscription Subscription, now time.Time) ([]PartitionReading, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	inputs, err := s.inputs(subscription, now, nil)
	if err != nil {
		return nil, err
	}
	var readings []PartitionReading
	for _, one := range inputs.known {
		readings = one.topic.appendPartitions(readings, one.name, one.state)
	}
	return readings, nil
}

// appendPartitions adds the topic's partitions; it has been answered, and has the subscription.
func (t *topicState) appendPartitions(readings []PartitionReading, topic string,
	s *subscriptionState,
) []PartitionReading {
	start, end := s.history.points[0], s.history.last()
	published, now := t.partitions.since(start.at)
	readings = slices.Grow(readings, len(t.partitions.indices))
	for i, index := range t.partitions.indices {
		r := PartitionReading{
			Topic: topic, Index: index,
			PublishRate: rateOf(now[i].rate(earlier(published, i))),
		}
		if last := s.partitions.last[i]; last.present {
			r.Ready = Known(readyMessages(last.backlogEntries, last.delayed, end.meanBatch))
			r.ProcessRate = rateOf(end.partitions[i].finished.rate(earlier(start.partitions, i).finished))
			r.Consumers = Unknown(ErrNotAsked)
			if last.consumers >= 0 {
				r.Consumers = Known(float64(last.consumers))
			}
		} else {
			r.Ready, r.ProcessRate, r.Consumers = Unknown(
				ErrSubscriptionNotFound), Unknown(ErrSubscriptionNotFound), Unknown(ErrSubscriptionNotFound)
		}
		readings = append(readings, r)
	}
	return readings
}

// earlier is the total of a partition at an earlier answer: nothing when it was not there yet.
func earlier[T any](totals []T, position int) T {
	if position < len(totals) {
		return totals[position]
	}
	var none T
	return none
}
