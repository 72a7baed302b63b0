// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// idle is an answer about two partitions without work, and the bulk answer that confirms it.
func idle(at time.Time) backlog.TopicSample {
	part := func(index int, published int64) backlog.PartitionSample {
		return backlog.PartitionSample{
			Index: index, PublishedMessages: published,
			Subscriptions: []backlog.SubscriptionSample{
				{Name: function, Type: backlog.Shared, DeliveredMessages: published},
				{Name: "another's", BacklogEntries: 7},
			},
		}
	}
	return backlog.TopicSample{
		At: at, Detail: backlog.Slim,
		Partitions: []backlog.PartitionSample{part(1, 20), part(0, 10)},
	}
}

func idleBulk(at time.Time) backlog.BulkSample {
	part := func(published int64) backlog.BulkTopic {
		return backlog.BulkTopic{PublishedMessages: published, Subscriptions: map[string]backlog.BulkSubscription{
			function: {Consumers: 1}, "another's": {BacklogEntries: 9},
		}}
	}
	return backlog.BulkSample{At: at, Topics: map[string]backlog.BulkTopic{
		orders + "-partition-0": part(10), orders + "-partition-1": part(20),
	}}
}

func TestABulkAnswerConfirmsAQuietTopicAndNothingElse(t *testing.T) {
	soon := start().Add(30 * time.Second)
	in := func(b backlog.BulkSample, partition string, change func(*backlog.BulkTopic)) {
		topic := b.Topics[orders+partition]
		change(&topic)
		b.Topics[orders+partition] = topic
	}
	tests := map[string]struct {
		change func(*backlog.TopicSample, *backlog.BulkSample)
		then   func(*backlog.Store)
		want   bool
	}{
		"everything is as we read it": {want: true},
		"a partition is absent, for it is not loaded": {change: func(_ *backlog.TopicSample,
			b *backlog.BulkSample,
		) {
			delete(b.Topics, orders+"-partition-1")
		}},
		"the whole topic is absent": {change: func(_ *backlog.TopicSample,
			b *backlog.BulkSample,
		) {
			clear(b.Topics)
		}},
		"an unknown partition": {change: func(_ *backlog.TopicSample, b *backlog.BulkSample) {
			b.Topics[orders+"-partition-2"] = backlog.BulkTopic{}
		}},
		"something was published": {change: func(_ *backlog.TopicSample, b *backlog.BulkSample) {
			in(*b, "-partition-0", func(topic *backlog.BulkTopic) { topic.PublishedMessages++ })
		}},
		"the topic was loaded again": {change: func(_ *backlog.TopicSample, b *backlog.BulkSample) {
			in(*b, "-partition-0", func(topic *backlog.BulkTopic) { topic.PublishedMessages = 0 })
		}},
		"a backlog now": {change: func(_ *backlog.TopicSample, b *backlog.BulkSample) {
			b.Topics[orders+"-partition-1"].Subscriptions[function] = backlog.BulkSubscription{BacklogEntries: 1, Consumers: 1}
		}},
		"a backlog before": {change: func(s *backlog.TopicSample, _ *backlog.BulkSample) {
			s.Partitions[0].Subscriptions[0].BacklogEntries = 1
		}},
		"a partition has no consumer": {change: func(_ *backlog.TopicSample, b *backlog.BulkSample) {
			b.Topics[orders+"-partition-1"].Subscriptions[function] = backlog.BulkSubscription{}
		}},
		"the subscription does not exist": {change: func(_ *backlog.TopicSample, b *backlog.BulkSample) {
			delete(b.Topics[orders+"-partition-1"].Subscriptions, function)
		}},
		"the subscription was not on all partitions": {change: func(s *backlog.TopicSample,
			_ *backlog.BulkSample,
		) {
			s.Partitions[0].Subscriptions = nil
		}},
		"our own is stale already": {change: func(_ *backlog.TopicSample,
			b *backlog.BulkSample,
		) {
			b.At = start().Add(staleAfter + 1)
		}},
		"our own was not read the last time": {then: func(s *backlog.Store) {
			s.Fail(topic(orders),
				backlog.ErrUnreachable)
		}},
		"a new subscription that was never read": {then: func(s *backlog.Store) {
			s.Track("you", backlog.NewSubscription(cluster(), "another's", orders))
		}},
		"bytes are wanted now, which were never read": {then: func(s *backlog.Store) {
			subscription := backlog.NewSubscription(cluster(), function, orders)
			subscription.Bytes = true
			s.Track("me", subscription)
		}},
		"no owner tracks it any more": {then: func(s *backlog.Store) { s.Untrack("me") }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			confirming(t, store)
			subscription := backlog.NewSubscription(cluster(), function, orders)
			store.Track("me", subscription)
			sample, bulk := idle(start()), idleBulk(soon)
			if tt.change != nil {
				tt.change(&sample, &bulk)
			}
			store.Record(topic(orders), sample)
			if tt.then != nil {
				tt.then(store)
			}
			confirmed := backlog.RecordBulk(store, cluster(), bulk)
			if !tt.want {
				require.Empty(t, confirmed)
				if r, err := store.Read(subscription, start()); err == nil {
					require.Equal(t, start(), r.At)
				}
				return
			}
			require.Equal(t, []backlog.Confirmation{{Topic: topic(orders), At: soon, QuietSince: start()}}, confirmed)
			r, err := store.Read(subscription, soon.Add(staleAfter))
			require.NoError(t, err)
			require.Equal(t, soon, r.At)
			require.Zero(t, known(t, r.Total))
			require.Zero(t, known(t, r.PublishRate), "nothing was published in the time that the bulk answer covers")
			require.Empty(t, backlog.RecordBulk(store, cluster(), bulk), "the same bulk answer confirms only once")
		})
	}
}

// confirming announces bulk answers to the store, as a Poller with a BulkSource does.
func confirming(t *testing.T, store *backlog.Store) {
	t.Helper()
	backlog.AttachBulk(store)
}

func TestAConfirmedTopicContinuesAsIfReadAgain(t *testing.T) {
	store := newStore(t)
	confirming(t, store)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	store.Track("me", subscription)
	at := func(seconds int) time.Time { return start().Add(time.Duration(seconds) * time.Second) }
	store.Record(topic(orders), idle(at(0)))
	require.Len(t, backlog.RecordBulk(store, cluster(), idleBulk(at(50))), 1)
	confirmed := backlog.RecordBulk(store, cluster(), idleBulk(at(100)))
	require.Equal(t, at(0), confirmed[0].QuietSince)

	next := idle(at(110))
	next.Partitions[0].PublishedMessages += 50
	next.Partitions[0].Subscriptions[0].BacklogEntries = 50
	store.Record(topic(orders), next)
	r, err := store.Read(subscription, at(110))
	require.NoError(t, err)
	require.InDelta(t, 50, known(t, r.Total), 0)
	require.InDelta(t, 5, known(t, r.PublishRate), 1e-9, "since the bulk answer, which showed no earlier message")
	require.Empty(t, backlog.RecordBulk(store, cluster(), idleBulk(at(120))), "it is quiet no more")
}

func TestAnAnswerOlderThanABulkAnswerIsDropped(t *testing.T) {
	store := newStore(t)
	confirming(t, store)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	store.Track("me", subscription)
	store.Record(topic(orders), idle(start()))
	require.Len(t, backlog.RecordBulk(store, cluster(), idleBulk(start().Add(10*time.Second))), 1)
	require.True(t, backlog.CannotWait(store, topic(orders)), "it is new")
	require.False(t, backlog.CannotWait(store, topic(orders)))
	store.Record(topic(orders), idle(start().Add(9*time.Second)))
	r, err := store.Read(subscription, start().Add(11*time.Second))
	require.NoError(t, err)
	require.Equal(t, start().Add(10*time.Second), r.At)
	require.True(t, store.Tracks(topic(orders)))
	require.False(t, store.Tracks(topic(returns)))
	require.True(t, backlog.CannotWait(store, topic(orders)), "it is fetched again at once, so that no answer is lost")
}

func TestABulkAnswerOlderThanTheReadingChangesNoTime(t *testing.T) {
	store := newStore(t)
	confirming(t, store)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	store.Track("me", subscription)
	store.Record(topic(orders), idle(start()))
	confirmed := backlog.RecordBulk(store, cluster(), idleBulk(start().Add(-30*time.Second)))
	require.Equal(t, []backlog.Confirmation{{Topic: topic(orders), At: start(), QuietSince: start()}}, confirmed)
	r, err := store.Read(subscription, start())
	require.NoError(t, err)
	require.Equal(t, start(), r.At)
}

func TestABulkAnswerConfirmsOnlyItsCluster(t *testing.T) {
	store := newStore(t)
	confirming(t, store)
	standby := backlog.Cluster{AdminURL: "http://standby:8080"}
	for _, one := range []backlog.Cluster{cluster(), standby} {
		store.Track(one.AdminURL, backlog.NewSubscription(one, function, orders))
		store.Record(backlog.Topic{Cluster: one, Name: orders}, idle(start()))
	}
	later := start().Add(10 * time.Second)
	require.Equal(t, []backlog.Confirmation{{Topic: topic(orders), At: later, QuietSince: start()}},
		backlog.RecordBulk(store, cluster(), idleBulk(later)))
	r, err := store.Read(backlog.NewSubscription(standby, function, orders), later)
	require.NoError(t, err)
	require.Equal(t, start(), r.At)
}

func TestATopicIsQuietSinceTheLastMessageThatWasPublished(t *testing.T) {
	store := newStore(t)
	confirming(t, store)
	store.Track("me", backlog.NewSubscription(cluster(), function, orders))
	before := idle(start())
	before.Partitions[0].PublishedMessages-- // worked off by the next answer
	store.Record(topic(orders), before)
	store.Record(topic(orders), idle(start().Add(10*time.Second)))
	store.Record(topic(orders), idle(start().Add(20*time.Second)))
	confirmed := backlog.RecordBulk(store, cluster(), idleBulk(start().Add(30*time.Second)))
	require.Len(t, confirmed, 1)
	require.Equal(t, start().Add(10*time.Second), confirmed[0].QuietSince)
}
