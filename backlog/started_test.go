// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// instanceConsumer is a consumer of an instance, which names its consumers at random.
func instanceConsumer(instance, name string, since time.Time) backlog.ConsumerSample {
	return backlog.ConsumerSample{ID: function + "#" + instance, Name: name, ConnectedSince: since}
}

func TestAnInstanceStartsWithItsFirstConsumer(t *testing.T) {
	type answer struct {
		at         int
		partitions [][]backlog.ConsumerSample
	}
	on := func(partitions ...[]backlog.ConsumerSample) [][]backlog.ConsumerSample { return partitions }
	old := instanceConsumer("0", "a", second(-3600))
	began := instanceConsumer("1", "b", second(8))
	for name, test := range map[string]struct {
		answers []answer
		want    map[string]time.Time
	}{
		"an old one": {answers: []answer{{0, on([]backlog.ConsumerSample{old})}}},
		"one that began": {
			[]answer{{0, on([]backlog.ConsumerSample{old})}, {10, on([]backlog.ConsumerSample{old, began})}},
			map[string]time.Time{function + "#1": second(8)},
		},
		"one before the first answer may have connected again": {
			answers: []answer{{10, on([]backlog.ConsumerSample{old, began})}},
		},
		"the first of several partitions": {
			[]answer{{0, on(nil, nil)}, {10, on(
				[]backlog.ConsumerSample{instanceConsumer("1", "x", second(9))}, []backlog.ConsumerSample{began},
			)}},
			map[string]time.Time{function + "#1": second(8)},
		},
		"one that connects again": {
			answers: []answer{
				{0, on([]backlog.ConsumerSample{old})},
				{10, on([]backlog.ConsumerSample{instanceConsumer("0", "c", second(7))})},
			},
		},
		"one that began and connects again": {
			[]answer{
				{0, on([]backlog.ConsumerSample{old})},
				{10, on([]backlog.ConsumerSample{old, began})},
				{20, on([]backlog.ConsumerSample{})},
				{30, on([]backlog.ConsumerSample{old, instanceConsumer("1", "d", second(25))})},
			},
			map[string]time.Time{function + "#1": second(8)},
		},
		"one that began ten minutes ago": {
			answers: []answer{{10, on([]backlog.ConsumerSample{began})}, {609, on([]backlog.ConsumerSample{began})}},
		},
		"a consumer that is no instance": {
			answers: []answer{{10, on([]backlog.ConsumerSample{{ID: "p", Name: "p", ConnectedSince: second(8)}})}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			subscription := backlog.NewSubscription(cluster(), function, orders)
			store.Track("me", subscription)
			last := 0
			for _, one := range test.answers {
				sample := partitioned(one.at, backlog.Full, make([]part, len(one.partitions))...)
				for i, consumers := range one.partitions {
					sample.Partitions[i].Subscriptions[0].Consumers = consumers
				}
				store.Record(topic(orders), sample)
				last = one.at
			}
			r, err := store.Read(subscription, second(last))
			require.NoError(t, err)
			require.True(t, maps.Equal(test.want, r.Started), r.Started)
		})
	}
}

func TestAnInstanceOfSeveralTopicsStartsWithItsFirstConsumer(t *testing.T) {
	const invoices = "persistent://public/default/invoices"
	store := newStore(t)
	subscription := backlog.NewSubscription(cluster(), function, orders, invoices)
	store.Track("me", subscription)
	for _, name := range []string{orders, invoices} {
		store.Record(topic(name), partitioned(0, backlog.Full, part{}))
	}
	for name, consumers := range map[string][]backlog.ConsumerSample{
		orders:   {instanceConsumer("1", "b", second(8)), instanceConsumer("2", "c", second(3))},
		invoices: {instanceConsumer("1", "d", second(6)), instanceConsumer("2", "e", second(4))},
	} {
		sample := partitioned(10, backlog.Full, part{})
		sample.Partitions[0].Subscriptions[0].Consumers = consumers
		store.Record(topic(name), sample)
	}
	r, err := store.Read(subscription, second(10))
	require.NoError(t, err)
	require.Equal(t, map[string]time.Time{function + "#1": second(6), function + "#2": second(3)}, r.Started)
}
