// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// stallAfter is longer than any pause seen between two messages that ready replicas processed.
const stallAfter = 30 * time.Second

// stall watches for ready replicas that process nothing. No autoscaler is the reason then, so its figures say nothing.
type stall struct {
	// after is how long this takes.
	after time.Duration
	// begun is the sample that had the last result, or that is the first to count.
	begun Sample
}

// isAt reports whether there was no result for that long, with ready replicas and messages without a result all along.
// After a report the time starts again.
func (s *stall) isAt(now Sample) bool {
	isWaiting := now.Done != nil && now.Published > *now.Done && now.ReadyReplicas != nil && *now.ReadyReplicas > 0
	if !isWaiting || s.begun.Done == nil || *now.Done != *s.begun.Done {
		s.begun = now
		if !isWaiting {
			s.begun.Done = nil
		}
		return false
	}
	if now.Seconds-s.begun.Seconds < s.after.Seconds() {
		return false
	}
	s.begun = now
	return true
}

// text says which consumers have messages, and which Pulsar could dispatch messages to.
func (s subscriptionStats) text() string {
	var holding, unacked, idle int64
	for _, c := range s.Consumers {
		switch {
		case c.UnackedMessages > 0:
			holding, unacked = holding+1, unacked+c.UnackedMessages
		case c.AvailablePermits > 0:
			idle++
		}
	}
	return fmt.Sprintf("%d of %d consumers have %d unacknowledged messages, and consumers with permits but no messages: "+
		"%d", holding, len(s.Consumers), unacked, idle)
}

// stalled says what is known of a stall. It is empty while Pulsar has no consumer: the replicas are still starting.
func (r *runner) stalled(ctx context.Context, s subject, now Sample, after time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	var texts []string
	for _, one := range s.stages {
		stats, err := r.admin.subscription(ctx, one.input, one.subscription, r.Scenario.Partitions > 0)
		if err != nil || len(stats.Consumers) == 0 {
			return ""
		}
		texts = append(texts, stats.text())
	}
	return fmt.Sprintf("no result came for %s, with %d ready replicas and %d messages without a result; %s; "+
		"look for a dispatch rate limit of the topic, or give the machine more CPU, and run it again",
		after, *now.ReadyReplicas, now.Published-*now.Done, strings.Join(texts, ", then "))
}
