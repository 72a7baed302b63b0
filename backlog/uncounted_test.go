// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestAnUncountedTopicHasABacklogAndNoRates(t *testing.T) {
	const orders = backlog.ScalableDomain + "shop/orders/new"
	store := newStore(t)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	feed := store.Feed(false)
	store.Track("me", subscription)
	answer := func(at int, backlogEntries int64) backlog.TopicSample {
		return backlog.TopicSample{
			At: second(at), Detail: backlog.Consumers, Uncounted: backlog.Errorf(backlog.ErrNotReported, "counters"),
			Partitions: []backlog.PartitionSample{{Index: backlog.NotPartitioned, Subscriptions: []backlog.SubscriptionSample{{
				Name: function, Type: backlog.Stream, BacklogEntries: backlogEntries, MoreConsumers: 3,
			}}}},
		}
	}
	for i, entries := range []int64{0, 5000, 20} { // nothing explains such changes, and nothing has to
		sample := answer(i*10, entries)
		require.NoError(t, feed.CheckPlausible(topic(orders), sample, nil))
		store.Record(topic(orders), sample)
	}

	r, err := store.Read(subscription, second(20))

	require.NoError(t, err)
	require.Equal(t, backlog.Stream, r.Type)
	require.InDelta(t, 20, known(t, r.Ready), 0)
	require.InDelta(t, -498, known(t, r.GrowthRate), 0)
	require.InDelta(t, 3, known(t, r.Consumers), 0)
	unknown(t, backlog.ErrNotReported, r.PublishRate, r.LatestPublishRate, r.DeliveryRate, r.ProcessRate, r.Unacked,
		r.Undispatched, r.LeastUndispatched, r.Delayed, r.InReplay, r.Redelivered)
	readings, err := store.Partitions(subscription, second(20))
	require.NoError(t, err)
	require.Len(t, readings, 1)
	require.InDelta(t, 20, known(t, readings[0].Ready), 0)
	unknown(t, backlog.ErrNotReported, readings[0].PublishRate, readings[0].ProcessRate)

	partial := answer(30, 7)
	partial.Incomplete = backlog.Errorf(backlog.ErrPartial, "1 of 4 segments did not answer")
	store.Record(topic(orders), partial)
	r, err = store.Read(subscription, second(30))
	require.NoError(t, err)
	require.ErrorIs(t, r.Coverage.Err(), backlog.ErrPartial)
	_, err = r.Ready.Value()
	require.ErrorIs(t, err, backlog.ErrPartial)
}
