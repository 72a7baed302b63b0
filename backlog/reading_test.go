// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// part is the subscription on one partition.
type part struct {
	published, backlog, delayed, unacked, delivered int64
	inReplay, throttled, draining, bytes            int64
	entries                                         int64 // as published when 0
	// seconds after start at which the oldest was published; 0 for none
	oldest         int
	consumers      []string
	component      string
	noSubscription bool
	kind           backlog.SubscriptionType // Shared when empty
}

// partitioned is an answer about a topic with these partitions.
func partitioned(at int, detail backlog.Detail, parts ...part) backlog.TopicSample {
	sample := backlog.TopicSample{At: second(at), Detail: detail}
	for i, p := range parts {
		partition := backlog.PartitionSample{Index: i, PublishedMessages: p.published}
		subscription := backlog.SubscriptionSample{
			Name: function, Type: cmp.Or(p.kind,
				backlog.Shared), BacklogEntries: p.backlog, DelayedMessages: p.delayed, UnackedMessages: p.unacked,
			DeliveredMessages: p.delivered, InReplayEntries: p.inReplay, ThrottledEvents: p.throttled,
			DrainingHashes: p.draining,
		}
		if detail.Has(backlog.Bytes) {
			subscription.BacklogBytes = p.bytes
		}
		if detail.Has(backlog.Age) && p.oldest > 0 {
			subscription.EarliestPublishTime = second(p.oldest)
		}
		if detail.Has(backlog.Full) {
			entries := p.published
			if p.entries > 0 {
				entries = p.entries
			}
			partition.AddedEntries = &entries
			for i, id := range p.consumers {
				consumer := backlog.ConsumerSample{ID: id, Name: fmt.Sprintf("connection of %s", id), Component: p.component}
				if i == 0 { // it holds them all
					consumer.UnackedMessages = p.unacked
				}
				subscription.Consumers = append(subscription.Consumers, consumer)
			}
		}
		if !p.noSubscription {
			partition.Subscriptions = []backlog.SubscriptionSample{subscription}
		}
		sample.Partitions = append(sample.Partitions, partition)
	}
	return sample
}

// consumed is a full answer about a topic with these consumers of its partitions.
func consumed(at int, partitions ...[]backlog.ConsumerSample) backlog.TopicSample {
	sample := partitioned(at, backlog.Full, make([]part, len(partitions))...)
	for i, consumers := range partitions {
		sample.Partitions[i].Subscriptions[0].Consumers = consumers
	}
	return sample
}

func second(n int) time.Time { return start().Add(time.Duration(n) * time.Second) }

func unknown(t *testing.T, reason error, measurements ...backlog.Measurement) {
	t.Helper()
	for _, m := range measurements {
		_, err := m.Value()
		require.ErrorIs(t, err, reason)
	}
}

const all = backlog.Full | backlog.Precise | backlog.Age | backlog.Bytes

func TestReadSumsUpTheAnswers(t *testing.T) {
	two := []string{"resize#0", "resize#1"}
	tests := map[string]struct {
		answers []backlog.TopicSample
		check   func(*testing.T, backlog.Reading)
	}{
		"counts messages in replay by the mean batch": {
			answers: []backlog.TopicSample{partitioned(0, all, part{published: 1000, entries: 100, backlog: 20, inReplay: 3})},
			check:   func(t *testing.T, r backlog.Reading) { require.InDelta(t, 30, known(t, r.InReplay), 1e-9) },
		},
		"has one type if some partitions had no consumer": {
			answers: []backlog.TopicSample{partitioned(0, all, part{kind: backlog.NoType}, part{kind: backlog.Failover},
				part{kind: backlog.NoType})},
			check: func(t *testing.T, r backlog.Reading) {
				require.Equal(t, []backlog.SubscriptionType{backlog.Failover, ""}, []backlog.SubscriptionType{r.Type, r.OtherType})
			},
		},
		"reports partitions of another type without unacked counts": {
			answers: []backlog.TopicSample{partitioned(0, all, part{kind: backlog.Failover},
				part{kind: backlog.Shared, unacked: 3}, part{kind: backlog.Shared})},
			check: func(t *testing.T, r backlog.Reading) {
				require.Equal(t, []backlog.SubscriptionType{backlog.Failover, backlog.Shared},
					[]backlog.SubscriptionType{r.Type, r.OtherType})
				_, err := r.Unacked.Value()
				require.Error(t, err)
			},
		},
		"sums bytes that were requested": {
			answers: []backlog.TopicSample{partitioned(0, all, part{backlog: 2, bytes: 4000}, part{backlog: 1, bytes: 500})},
			check:   func(t *testing.T, r backlog.Reading) { require.InDelta(t, 4500, known(t, r.Bytes), 0) },
		},
		"does not know bytes that were not requested": {
			answers: []backlog.TopicSample{partitioned(0, backlog.Full, part{backlog: 2, bytes: 4000})},
			check:   func(t *testing.T, r backlog.Reading) { unknown(t, backlog.ErrNotRequested, r.Bytes) },
		},
		"takes the age of the oldest message of all partitions": {
			answers: []backlog.TopicSample{partitioned(60, all, part{}, part{backlog: 1, oldest: 50},
				part{backlog: 1, oldest: 20}, part{})},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 40, known(t, r.OldestAge), 0)
				require.Equal(t, second(60), r.OldestAt)
			},
		},
		"keeps the age with its own time if newer answers lack it": {
			answers: []backlog.TopicSample{
				partitioned(60, all, part{backlog: 1, oldest: 50}), partitioned(70, backlog.Full, part{backlog: 1}),
			},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 10, known(t, r.OldestAge), 0)
				require.Equal(t, second(60), r.OldestAt)
			},
		},
		"counts a message as new if its producer's clock is ahead": {
			answers: []backlog.TopicSample{partitioned(60, all, part{backlog: 1, oldest: 70})},
			check:   func(t *testing.T, r backlog.Reading) { require.InDelta(t, 0, known(t, r.OldestAge), 0) },
		},
		"does not know the age of a backlog before a request": {
			answers: []backlog.TopicSample{partitioned(60, backlog.Full, part{backlog: 1, oldest: 50})},
			check:   func(t *testing.T, r backlog.Reading) { unknown(t, backlog.ErrNotRequested, r.OldestAge) },
		},
		"knows that an empty backlog has no age": {
			answers: []backlog.TopicSample{
				partitioned(60, all, part{backlog: 1, oldest: 50}), partitioned(70, backlog.Slim, part{}),
			},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 0, known(t, r.OldestAge), 0)
				require.Equal(t, second(70), r.OldestAt)
			},
		},
		"does not show an age that was last measured long ago": {
			answers: []backlog.TopicSample{
				partitioned(0, all, part{backlog: 1, oldest: -10}), partitioned(50, backlog.Full, part{backlog: 1}),
				partitioned(91, backlog.Full, part{backlog: 1}),
			},
			check: func(t *testing.T, r backlog.Reading) { unknown(t, backlog.ErrStale, r.OldestAge) },
		},
		"measures deliveries and finished messages": {
			answers: []backlog.TopicSample{
				partitioned(0, backlog.Full, part{backlog: 500, delivered: 100, unacked: 50}),
				partitioned(10, backlog.Full, part{backlog: 500, delivered: 400, unacked: 150}),
			},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 30, known(t, r.DeliveryRate), 1e-9)
				require.InDelta(t, 20, known(t, r.ProcessRate), 1e-9)
			},
		},
		"does not count messages of consumers that left as finished": {
			answers: []backlog.TopicSample{
				partitioned(0, backlog.Full, part{backlog: 900, delivered: 1000, unacked: 800, consumers: two}),
				partitioned(5, backlog.Full, part{backlog: 850, delivered: 1050, unacked: 800, consumers: two}),
				partitioned(10, backlog.Full, part{backlog: 800, delivered: 1100, unacked: 300, consumers: two[:1]}),
			},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 10, known(t, r.ProcessRate), 1e-9)
				require.InDelta(t, 10, known(t, r.DeliveryRate), 1e-9)
			},
		},
		"keeps the rates of other partitions when one is loaded again": {
			answers: []backlog.TopicSample{
				partitioned(0, backlog.Slim, part{published: 100, delivered: 100}, part{published: 5, delivered: 5}),
				partitioned(5, backlog.Slim, part{published: 200, delivered: 200}, part{published: 105, delivered: 55}),
				partitioned(10, backlog.Slim, part{published: 300, delivered: 300}, part{published: 1, delivered: 1}),
			},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 40, known(t, r.PublishRate), 1e-9)
				require.InDelta(t, 30, known(t, r.ProcessRate), 1e-9)
			},
		},
		"detects a reloaded partition by any of its counters": {
			answers: []backlog.TopicSample{
				partitioned(0, backlog.Slim, part{published: 100, delivered: 500}),
				partitioned(5, backlog.Slim, part{published: 200, delivered: 600}),
				partitioned(10, backlog.Slim, part{published: 9000, delivered: 300}), // published has passed its old value
			},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 20, known(t, r.PublishRate), 1e-9)
				require.InDelta(t, 20, known(t, r.ProcessRate), 1e-9)
			},
		},
		"counts a partition that was added from its first message": {
			answers: []backlog.TopicSample{
				partitioned(0, backlog.Slim, part{published: 100, delivered: 100}),
				partitioned(10, backlog.Slim, part{published: 200, delivered: 200}, part{published: 50, delivered: 20}),
			},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 15, known(t, r.PublishRate), 1e-9)
				require.InDelta(t, 12, known(t, r.ProcessRate), 1e-9)
				require.Equal(t, 2, r.Partitions)
			},
		},
		"restarts if the topic was recreated with fewer partitions": {
			answers: []backlog.TopicSample{
				partitioned(0, backlog.Slim, part{published: 100}, part{published: 100}),
				partitioned(10, backlog.Slim, part{published: 300}),
			},
			check: func(t *testing.T, r backlog.Reading) {
				unknown(t, backlog.ErrNoRate, r.PublishRate)
				require.Equal(t, 1, r.Partitions)
			},
		},
		"is throttled if a limit delayed dispatch in the window": {
			answers: []backlog.TopicSample{
				partitioned(0, backlog.Slim, part{throttled: 3}),
				partitioned(10, backlog.Slim, part{throttled: 4}),
			},
			check: func(t *testing.T, r backlog.Reading) { require.True(t, r.Throttled) },
		},
		"is throttled by events since the partition was loaded again": {
			answers: []backlog.TopicSample{
				partitioned(0, backlog.Slim, part{throttled: 3}),
				partitioned(10, backlog.Slim, part{throttled: 1}),
			},
			check: func(t *testing.T, r backlog.Reading) { require.True(t, r.Throttled) },
		},
		"is not throttled by events before the window": {
			answers: []backlog.TopicSample{
				partitioned(0, backlog.Slim, part{throttled: 3}), partitioned(10, backlog.Slim, part{throttled: 9}),
				partitioned(20, backlog.Slim, part{throttled: 9}),
			},
			check: func(t *testing.T, r backlog.Reading) { require.False(t, r.Throttled) },
		},
		"is draining while hashes are blocked by former consumers": {
			answers: []backlog.TopicSample{partitioned(0, backlog.Slim, part{}, part{draining: 2})},
			check:   func(t *testing.T, r backlog.Reading) { require.True(t, r.Draining) },
		},
		"reports partitions without the consumers that others have": {
			answers: []backlog.TopicSample{partitioned(0, backlog.Full,
				part{published: 10, backlog: 10, delayed: 4, consumers: two}, part{published: 7, backlog: 7, delayed: 2}, part{},
				part{published: 3, backlog: 3, delayed: 3}, part{noSubscription: true})},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 2, known(t, r.UnreadPartitions), 0)
				require.InDelta(t, 10, known(t, r.UnreadMessages), 0, "Pulsar does not count which of them fell due")
				require.InDelta(t, 16, known(t, r.Ready), 0)
				require.False(t, r.Delayed.Known())
				require.InDelta(t, 2, known(t, r.Consumers), 0)
				require.Equal(t, 5, r.Partitions)
			},
		},
		"counts messages that may be due as ready without a consumer": {
			answers: []backlog.TopicSample{
				partitioned(0, backlog.Full, part{published: 5, backlog: 5, delayed: 5, consumers: two}),
				partitioned(10, backlog.Full, part{published: 5, backlog: 5, delayed: 5}),
			},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 5, known(t, r.Total), 0)
				require.InDelta(t, 5, known(t, r.Ready), 0)
				require.InDelta(t, 5, known(t, r.Undispatched), 0)
				require.False(t, r.Delayed.Known())
			},
		},
		"knows delays again with the first consumer": {
			answers: []backlog.TopicSample{
				partitioned(0, backlog.Full, part{published: 5, backlog: 5, delayed: 5}),
				partitioned(10, backlog.Full, part{published: 5, backlog: 5, delayed: 5, consumers: two}),
			},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 0, known(t, r.Ready), 0)
				require.InDelta(t, 5, known(t, r.Delayed), 0)
			},
		},
		"has no delayed messages without a backlog": {
			answers: []backlog.TopicSample{partitioned(0, backlog.Full, part{published: 5})},
			check:   func(t *testing.T, r backlog.Reading) { require.InDelta(t, 0, known(t, r.Delayed), 0) },
		},
		"calls no partition unread without any consumer": {
			answers: []backlog.TopicSample{partitioned(0, backlog.Full, part{backlog: 10}, part{backlog: 7})},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 0, known(t, r.UnreadPartitions), 0)
				require.InDelta(t, 0, known(t, r.UnreadMessages), 0)
				require.InDelta(t, 0, known(t, r.Consumers), 0)
			},
		},
		"does not know consumers and unread partitions before a full answer": {
			answers: []backlog.TopicSample{partitioned(0, backlog.Slim, part{backlog: 10, consumers: two}, part{backlog: 7})},
			check: func(t *testing.T, r backlog.Reading) {
				unknown(t, backlog.ErrNotRequested, r.Consumers, r.UnreadPartitions, r.UnreadMessages)
			},
		},
		"lists the functions that share the subscription": {
			answers: []backlog.TopicSample{partitioned(0, backlog.Full,
				part{consumers: two, component: "public/default/resize"}, part{consumers: two, component: "public/default/crop"})},
			check: func(t *testing.T, r backlog.Reading) {
				require.Equal(t, []string{"public/default/crop", "public/default/resize"}, r.Components)
				require.InDelta(t, 2, known(t, r.Consumers), 0)
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reading := readAfter(t, test.answers...)
			test.check(t, reading)
			unknown(t, backlog.ErrNotRequested, reading.Instances.Busy, reading.Instances.Answering)
		})
	}
}

func TestMissingBytesAreNotTakenForUnrequested(t *testing.T) {
	store := newStore(t)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	subscription.Bytes = true
	store.Track("me", subscription)
	store.Record(topic(orders), partitioned(0, backlog.Full, part{backlog: 2}))
	r, err := store.Read(subscription, second(0))
	require.NoError(t, err)
	unknown(t, backlog.ErrNoData, r.Bytes)
}

func TestBytesAreFetchedAtOnceForTheirFirstOwner(t *testing.T) {
	store := newStore(t)
	backlog.Attach(store)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	store.Track("me", subscription)
	store.Record(topic(orders), partitioned(0, backlog.Full, part{}))
	require.True(t, backlog.CannotWait(store, topic(orders)), "it is new")

	subscription.Bytes = true
	store.Track("me", subscription)
	require.True(t, backlog.CannotWait(store, topic(orders)), "it has no bytes yet")
	store.Track("you", subscription)
	require.False(t, backlog.CannotWait(store, topic(orders)), "they are requested already")
}

func TestAnAgeIsShownAsLongAsItsAnswer(t *testing.T) {
	store, err := backlog.NewStore(rateWindow, 10*time.Minute, backlog.Bounds{})
	require.NoError(t, err)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	store.Track("me", subscription)
	store.Record(topic(orders), partitioned(100, all, part{backlog: 1, oldest: 10}))
	r, err := store.Read(subscription, second(300))
	require.NoError(t, err)
	require.InDelta(t, 90, known(t, r.OldestAge), 0, "answers are rare here, and it is no older than they are")

	store.Record(topic(orders), partitioned(300, backlog.Full, part{backlog: 1}))
	r, err = store.Read(subscription, second(300))
	require.NoError(t, err)
	unknown(t, backlog.ErrStale, r.OldestAge)
}
