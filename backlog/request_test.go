// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestARequestNamesTheTrackedSubscriptions(t *testing.T) {
	store := newStore(t)
	feed := store.Feed(false)
	store.Track("me", backlog.NewSubscription(cluster(), function, orders))
	store.Track("another", backlog.NewSubscription(cluster(), "audit", orders))
	require.Equal(t, []string{"audit", function}, feed.NextRequest(topic(orders), start()).Subscriptions)
	store.Untrack("another")
	require.Equal(t, []string{function}, feed.NextRequest(topic(orders), start()).Subscriptions)
	require.False(t, feed.NextRequest(topic(returns), start()).Wants(function), "nothing is tracked there")
}

func TestASubscriptionThatWasNotRequestedIsNotMissing(t *testing.T) {
	store := newStore(t)
	mine := backlog.NewSubscription(cluster(), function, orders)
	later := backlog.NewSubscription(cluster(), "later", orders)
	store.Track("me", mine)
	sample := answer{at: 0, backlogEntries: 5}.sample()
	sample.Subscriptions = []string{function}
	store.Track("another", later) // while the request is under way
	store.Record(topic(orders), sample)

	r, err := store.Read(mine, start())
	require.NoError(t, err)
	require.InDelta(t, 5, known(t, r.Ready), 0)
	_, err = store.Read(later, start())
	require.ErrorIs(t, err, backlog.ErrNoData)
	require.NotErrorIs(t, err, backlog.ErrSubscriptionNotFound)

	sample = answer{at: 10, backlogEntries: 5}.sample()
	sample.Subscriptions = []string{function, "later"}
	store.Record(topic(orders), sample)
	_, err = store.Read(later, start())
	require.ErrorIs(t, err, backlog.ErrSubscriptionNotFound)
}

func TestAMissingSubscriptionNamesThoseThatExist(t *testing.T) {
	others := func(more int, names ...string) backlog.OtherSubscriptions {
		return backlog.OtherSubscriptions{Names: names, More: more}
	}
	for name, test := range map[string]struct {
		others backlog.OtherSubscriptions
		want   string
	}{
		"none":      {others(0), `"typo", but "public/default/resize"; it appears when the first replica connects`},
		"some":      {others(0, "b", "a"), `"typo", but "a", "b", "public/default/resize"; it appears`},
		"many":      {others(7, "e", "d", "c", "b", "a"), `"typo", but "a", "b", "c", "d", "e" and 8 more; it appears`},
		"in quotes": {others(0, "a\nb"), `"typo", but "a", "public/default/resize"; it appears`},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			typo := backlog.NewSubscription(cluster(), "typo", orders)
			store.Track("me", backlog.NewSubscription(cluster(), function, orders))
			store.Track("another", typo)
			sample := answer{at: 0, backlogEntries: 5}.sample()
			sample.Others = test.others
			store.Record(topic(orders), sample)
			_, err := store.Read(typo, start())
			require.ErrorIs(t, err, backlog.ErrSubscriptionNotFound)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestConsumersThatAreOnlyCountedAreConsumers(t *testing.T) {
	// crowd is an answer of two partitions with 3,000 consumers each; the lists have only the first ones.
	crowd := func(at, first int) backlog.TopicSample {
		sample := answer{at: at, backlogEntries: 5}.sample()
		one := sample.Partitions[0]
		sample.Partitions = nil
		for index := range 2 {
			one.Index = index
			subscription := backlog.SubscriptionSample{Name: function, BacklogEntries: 5}
			subscription.DeliveredMessages = int64(100 * (at + 1))
			for i := range 3 {
				name := fmt.Sprint("c", first+i)
				subscription.Consumers = append(subscription.Consumers, backlog.ConsumerSample{ID: name, Name: name})
			}
			subscription.MoreConsumers, subscription.UnackedMessages = 2_997, 50
			one.Subscriptions = []backlog.SubscriptionSample{subscription}
			sample.Partitions = append(sample.Partitions, one)
		}
		return sample
	}
	store := newStore(t)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	store.Track("me", subscription)
	store.Record(topic(orders), crowd(0, 0))
	store.Record(topic(orders), crowd(10, 7))
	r, err := store.Read(subscription, start())
	require.NoError(t, err)
	require.InDelta(t, 3_000, known(t, r.Consumers), 0, "a replica consumes both partitions")
	require.InDelta(t, 0, known(t, r.UnreadPartitions), 0)
	require.InDelta(t, 200, known(t, r.ProcessRate), 0.01, "others in the list do not mean that consumers left")
	require.False(t, r.SteadyConsumers, "they are not distinguishable, so the capacity of one is not learned")
	partitions, err := store.Partitions(subscription, start())
	require.NoError(t, err)
	require.InDelta(t, 3_000, known(t, partitions[0].Consumers), 0)
}
