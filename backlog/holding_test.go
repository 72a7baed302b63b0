// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestConsumersThatHoldMessagesAreCountedOnce(t *testing.T) {
	holds := func(name string, messages int64) backlog.ConsumerSample {
		return backlog.ConsumerSample{ID: name, Name: name, UnackedMessages: messages}
	}
	for name, test := range map[string]struct {
		kind       backlog.SubscriptionType
		partitions [][]backlog.ConsumerSample
		want       float64
		unknown    bool
	}{
		"one of two": {backlog.Shared, [][]backlog.ConsumerSample{{holds("a", 5), holds("b", 0)}}, 1, false},
		"the same on several partitions": {
			backlog.Shared, [][]backlog.ConsumerSample{{holds("a", 5), holds("b", 0)}, {holds("a", 2), holds("b", 0)}}, 1, false,
		},
		"each on another partition": {
			backlog.KeyShared, [][]backlog.ConsumerSample{
				{holds("a", 5), holds("b", 0)}, {holds("a", 0), holds("b", 1)},
			}, 2, false,
		},
		"none": {backlog.Shared, [][]backlog.ConsumerSample{{holds("a", 0)}}, 0, false},
		"consumers of one name": {
			backlog.Shared, [][]backlog.ConsumerSample{{holds("a", 5), holds("a", 0)}}, 0, true,
		},
		"a type without a count": {backlog.Failover, [][]backlog.ConsumerSample{{holds("a", 0)}}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			sample := consumed(0, test.partitions...)
			for _, partition := range sample.Partitions {
				partition.Subscriptions[0].Type = test.kind
			}
			r := readAfter(t, sample)
			if test.unknown {
				require.False(t, r.Holding.Known())
				return
			}
			require.InDelta(t, test.want, known(t, r.Holding), 0)
		})
	}
}
