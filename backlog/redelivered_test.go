// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// TestMessagesOfConsumersThatLeftAreRedelivered: a replica holds 40 of 100 messages, the other one 20, and one of them
// leaves.
func TestMessagesOfConsumersThatLeftAreRedelivered(t *testing.T) {
	holds := func(name string, messages int64) backlog.ConsumerSample {
		return backlog.ConsumerSample{ID: name, Name: name, ConnectedSince: start(), UnackedMessages: messages}
	}
	both := []backlog.ConsumerSample{holds("a", 20), holds("b", 40)}
	sample := func(at int, p part, consumers ...backlog.ConsumerSample) backlog.TopicSample {
		s := partitioned(at, backlog.Full, p)
		s.Partitions[0].Subscriptions[0].Consumers = consumers
		return s
	}
	for name, test := range map[string]struct {
		after backlog.TopicSample
		want  float64
	}{
		"none left": {sample(10, part{published: 130, delivered: 90, unacked: 60, backlog: 100}, both...), 0},
		"they wait for a consumer with permits": {
			sample(10, part{published: 100, delivered: 60, unacked: 20, backlog: 100}, holds("a", 20)), 40,
		},
		"they were delivered again": {
			sample(10, part{published: 100, delivered: 100, unacked: 60, backlog: 100}, holds("a", 60)), 40,
		},
		"some were processed before": {
			sample(10, part{published: 130, delivered: 115, unacked: 50, backlog: 90}, holds("a", 50)), 25,
		},
		"the broker still counts those that left": {
			sample(10, part{published: 100, delivered: 60, unacked: 60, backlog: 100}, holds("a", 20)), 40,
		},
		"all were processed before": {sample(10, part{published: 100, delivered: 100}, holds("a", 0)), 0},
		"an administrator skips the backlog meanwhile": {
			sample(10, part{published: 100, delivered: 60, unacked: 0, backlog: 0}, holds("a", 0)), 0,
		},
		"an administrator resets the cursor": {
			sample(10, part{published: 100, delivered: 160, unacked: 60, backlog: 5000}, holds("c", 60)), 60,
		},
		"a connection was lost": {
			sample(10, part{published: 100, delivered: 60, unacked: 0, backlog: 100}), 60,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := sample(0, part{published: 100, delivered: 60, unacked: 60, backlog: 100}, both...)
			require.InDelta(t, test.want, known(t, readAfter(t, before, test.after).Redelivered), 0)
		})
	}
}

func TestRedeliveredMessagesAreUnknownWhereUnacknowledgedOnesAre(t *testing.T) {
	r := readAfter(t, partitioned(0, backlog.Full, part{kind: backlog.Failover}))
	require.False(t, r.Redelivered.Known())
}
