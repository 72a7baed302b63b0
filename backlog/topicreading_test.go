// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestReadSumsEverythingOverTopics(t *testing.T) {
	store := newStore(t)
	both := backlog.NewSubscription(cluster(), function, orders, returns)
	store.Track("me", both)
	store.Record(topic(orders), partitioned(58, all, part{published: 20, backlog: 9}))
	store.Record(topic(returns), partitioned(50, all, part{published: 20, backlog: 9}))
	store.Record(topic(orders), partitioned(68, all,
		part{
			published: 40, delivered: 20, backlog: 9, bytes: 90, inReplay: 2, oldest: 48, consumers: []string{"a", "b"},
			component: "x",
		},
		part{backlog: 4, oldest: 60}))
	store.Record(topic(returns), partitioned(60, all,
		part{
			published: 30, delivered: 40, backlog: 5, bytes: 10, inReplay: 1, oldest: 55, throttled: 1, draining: 1,
			consumers: []string{"b", "c"}, component: "y",
		}))

	r, err := store.Read(both, second(70))
	require.NoError(t, err)
	require.InDelta(t, 100, known(t, r.Bytes), 0)
	require.InDelta(t, 3, known(t, r.InReplay), 0)
	require.InDelta(t, 20, known(t, r.OldestAge), 0)
	require.Equal(t, second(68), r.OldestAt, "when that message had this age")
	require.InDelta(t, 6, known(t, r.DeliveryRate), 1e-9)
	require.InDelta(t, 3, known(t, r.PublishRate), 1e-9)
	require.InDelta(t, 3, known(t, r.Consumers), 0, "a, b and c, where each topic has two")
	require.Equal(t, []string{"x", "y"}, r.Components)
	require.True(t, r.Throttled)
	require.True(t, r.Draining)
	require.Equal(t, 3, r.Partitions)
	require.InDelta(t, 1, known(t, r.UnreadPartitions), 0)
	require.InDelta(t, 4, known(t, r.UnreadMessages), 0)
}

func TestPartitionsShowTheirLoad(t *testing.T) {
	store := newStore(t)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	store.Track("me", subscription)
	_, err := store.Partitions(subscription, second(0))
	require.ErrorIs(t, err, backlog.ErrNoData)

	store.Record(topic(orders), partitioned(0, backlog.Slim, part{published: 0}, part{published: 50, delivered: 9}))
	readings, err := store.Partitions(subscription, second(0))
	require.NoError(t, err)
	require.InDelta(t, 0, known(t, readings[0].PublishRate), 0)
	unknown(t, backlog.ErrNoRate, readings[1].PublishRate, readings[1].ProcessRate)
	unknown(t, backlog.ErrNotRequested, readings[0].Consumers)

	later := partitioned(10, backlog.Full,
		part{
			published: 1000, entries: 100, delivered: 400, unacked: 100, backlog: 70, delayed: 100,
			consumers: []string{"a", "b"},
		},
		part{published: 20, delivered: 20}, // loaded again
		part{published: 30, noSubscription: true})
	later.Partitions[0], later.Partitions[2] = later.Partitions[2], later.Partitions[0] // Pulsar lists them in no order
	store.Record(topic(orders), later)
	readings, err = store.Partitions(subscription, second(10))
	require.NoError(t, err)
	require.Len(t, readings, 3)
	for i, r := range readings {
		require.Equal(t, orders, r.Topic)
		require.Equal(t, i, r.Index)
	}
	require.InDelta(t, 100, known(t, readings[0].PublishRate), 1e-9)
	require.InDelta(t, 30, known(t, readings[0].ProcessRate), 1e-9)
	require.InDelta(t, 390, known(t, readings[0].Ready), 1e-9,
		"70 entries of 7 messages, the mean of the topic, less 100 delayed")
	require.InDelta(t, 2, known(t, readings[0].Consumers), 0)
	unknown(t, backlog.ErrNoRate, readings[1].PublishRate, readings[1].ProcessRate)
	require.InDelta(t, 0, known(t, readings[1].Consumers), 0)
	require.InDelta(t, 3, known(t, readings[2].PublishRate), 1e-9)
	unknown(t, backlog.ErrSubscriptionNotFound, readings[2].Ready, readings[2].ProcessRate, readings[2].Consumers)
}

func TestPartitionsOfPatternsAreThoseOfTheTopicsThatCount(t *testing.T) {
	store := newStore(t)
	pattern, err := backlog.ParsePattern("persistent://public/default/.*s")
	require.NoError(t, err)
	subscription := backlog.NewSubscription(cluster(), function, orders).WithPatterns(pattern)
	store.Track("me", subscription)
	namespace := backlog.Namespace{Cluster: cluster(), Name: "public/default"}
	const later = "persistent://public/default/news"
	backlog.List(store, namespace, []string{orders, returns, later}, second(0))
	store.Record(topic(orders), partitioned(0, backlog.Full, part{backlog: 1, consumers: []string{"a"}}, part{backlog: 2}))
	store.Record(topic(returns), partitioned(0, backlog.Full, part{backlog: 4}))
	store.Record(topic(later), partitioned(0, backlog.Full, part{noSubscription: true}))

	readings, err := store.Partitions(subscription, second(1))
	require.NoError(t, err)
	require.Len(t, readings, 3)
	for i, ready := range []float64{1, 2, 4} {
		require.InDelta(t, ready, known(t, readings[i].Ready), 0)
	}
	r, err := store.Read(subscription, second(1))
	require.NoError(t, err)
	require.Equal(t, 3, r.Partitions)
	require.InDelta(t, 2, known(t, r.UnreadPartitions), 0, "of both topics, because one of them has a consumer")
	require.InDelta(t, 6, known(t, r.UnreadMessages), 0)
}

func TestMessagesOfAFixedDelayThatTheBrokerHasNotReadAreDelayed(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*answer)
		ready  float64
	}{
		"while consumers could receive":     {func(*answer) {}, 10},
		"not while consumers are full":      {func(a *answer) { a.permits = 0 }, 310_000},
		"not without consumers":             {func(a *answer) { a.consumers = 0 }, 360_000},
		"as before without consumers in it": {func(a *answer) { a.slim = true }, 10},
		"not of few":                        {func(a *answer) { a.delayed = 10_000 }, 350_000},
		"not while a limit keeps them back": {func(a *answer) { a.throttled = 1 }, 310_000},
		"more, if those are known":          {func(a *answer) { a.delayed = 359_995 }, 5},
		"never fewer than are known":        {func(a *answer) { a.unacked = 340_000 }, 310_000},
	} {
		t.Run(name, func(t *testing.T) {
			a := answer{
				published: 360_000, entries: 360_000, backlogEntries: 360_000, delayed: 50_000, unacked: 10, consumers: 2,
				permits: 990,
			}
			before := a.sample()
			a.at = 10
			tt.change(&a)
			require.InDelta(t, tt.ready, known(t, readAfter(t, before, a.sample()).Ready), 1e-9)
		})
	}
}
