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
	list := func(consumers ...backlog.ConsumerSample) []backlog.ConsumerSample { return consumers }
	old := instanceConsumer("0", "a", second(-3600))
	began := instanceConsumer("1", "b", second(8))
	starts := map[string]time.Time{function + "#1": second(8)}
	for name, test := range map[string]struct {
		answers []backlog.TopicSample
		want    map[string]time.Time
	}{
		"an old one":     {answers: []backlog.TopicSample{consumed(0, list(old))}},
		"one that began": {[]backlog.TopicSample{consumed(0, list(old)), consumed(10, list(old, began))}, starts},
		"one before the first answer may have connected again": {
			answers: []backlog.TopicSample{consumed(10, list(old, began))},
		},
		"the first of several partitions": {
			[]backlog.TopicSample{
				consumed(0, nil, nil), consumed(10, list(instanceConsumer("1", "x", second(9))), list(began)),
			}, starts,
		},
		"one that connects again": {
			answers: []backlog.TopicSample{
				consumed(0, list(old)), consumed(10, list(instanceConsumer("0", "c", second(7)))),
			},
		},
		"one that began and connects again": {
			[]backlog.TopicSample{
				consumed(0, list(old)), consumed(10, list(old, began)), consumed(20, list()),
				consumed(30, list(old, instanceConsumer("1", "d", second(25)))),
			}, starts,
		},
		"one that began ten minutes ago": {
			answers: []backlog.TopicSample{consumed(10, list(began)), consumed(609, list(began))},
		},
		"a consumer that is no instance": {
			answers: []backlog.TopicSample{
				consumed(10, list(backlog.ConsumerSample{ID: "p", Name: "p", ConnectedSince: second(8)})),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := readAfter(t, test.answers...)
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
		store.Record(topic(name), consumed(10, consumers))
	}
	r, err := store.Read(subscription, second(10))
	require.NoError(t, err)
	require.Equal(t, map[string]time.Time{function + "#1": second(6), function + "#2": second(3)}, r.Started)
}
