// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestASumKnowsConsumersOnlyIfAllTopicsDo(t *testing.T) {
	tests := map[string]struct {
		orders, returns []answer
		consumers       float64 // -1 when unknown
		steady          bool
	}{
		"the same two replicas on both": {
			orders:    []answer{{at: 0, consumers: 2}, {at: 10, consumers: 2}},
			returns:   []answer{{at: 0, consumers: 2}, {at: 10, consumers: 2}},
			consumers: 2, steady: true,
		},
		"the consumers of one are unknown": {
			orders:    []answer{{at: 0, consumers: 2}, {at: 10, consumers: 2}},
			returns:   []answer{{at: 0, slim: true}, {at: 10, slim: true}},
			consumers: -1,
		},
		"the consumers of the other are unknown": {
			orders:    []answer{{at: 0, slim: true}, {at: 10, slim: true}},
			returns:   []answer{{at: 0, consumers: 2}, {at: 10, consumers: 2}},
			consumers: -1,
		},
		"one joined on one of them": {
			orders:    []answer{{at: 0, consumers: 2}, {at: 10, consumers: 2}},
			returns:   []answer{{at: 0, consumers: 1}, {at: 10, consumers: 2}},
			consumers: 2,
		},
		"one joined on the other": {
			orders:    []answer{{at: 0, consumers: 1}, {at: 10, consumers: 2}},
			returns:   []answer{{at: 0, consumers: 2}, {at: 10, consumers: 2}},
			consumers: 2,
		},
		"the number at the start of the window is unknown": {
			orders:    []answer{{at: 0, slim: true}, {at: 5, consumers: 2}, {at: 10, consumers: 2}},
			returns:   []answer{{at: 0, consumers: 2}, {at: 10, consumers: 2}},
			consumers: 2,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			subscription := backlog.NewSubscription(cluster(), function, orders, returns)
			store.Track("me", subscription)
			for topicName, answers := range map[string][]answer{orders: test.orders, returns: test.returns} {
				for _, a := range answers {
					store.Record(topic(topicName), a.sample())
				}
			}
			r, err := store.Read(subscription, second(10))
			require.NoError(t, err)
			require.Equal(t, test.steady, r.SteadyConsumers)
			if test.consumers < 0 {
				unknown(t, backlog.ErrNotRequested, r.Consumers, r.UnreadPartitions, r.UnreadMessages)
				return
			}
			require.InDelta(t, test.consumers, known(t, r.Consumers), 0)
		})
	}
}

func TestASumHasTheAgeAndTimeOfOneMessage(t *testing.T) {
	all := backlog.Full | backlog.Age
	stuck, held := part{backlog: 1, oldest: 10}, part{backlog: 1}
	tests := map[string]struct {
		orders, returns []backlog.TopicSample
		age             float64
		at              int
	}{
		"beside an empty topic that was read later": {
			[]backlog.TopicSample{partitioned(60, all, stuck)}, []backlog.TopicSample{partitioned(64, all, part{})}, 50, 60,
		},
		"beside an empty topic that was read before": {
			[]backlog.TopicSample{partitioned(60, all, stuck)}, []backlog.TopicSample{partitioned(54, all, part{})}, 50, 60,
		},
		"of the message that was published first, though its age is older": {
			[]backlog.TopicSample{partitioned(30, all, stuck), partitioned(60, backlog.Full, held)},
			[]backlog.TopicSample{partitioned(60, all, part{backlog: 1, oldest: 20})},
			20, 30,
		},
		"of the message that was published first, read last": {
			[]backlog.TopicSample{partitioned(60, all, stuck)},
			[]backlog.TopicSample{partitioned(54, all, part{backlog: 1, oldest: 20})},
			50, 60,
		},
		"of none at the time that is older": {
			[]backlog.TopicSample{partitioned(60, all, part{})}, []backlog.TopicSample{partitioned(54, all, part{})}, 0, 54,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, topics := range [][]string{{orders, returns}, {returns, orders}} {
				store := newStore(t)
				subscription := backlog.NewSubscription(cluster(), function, topics...)
				store.Track("me", subscription)
				for topicName, answers := range map[string][]backlog.TopicSample{orders: test.orders, returns: test.returns} {
					for _, sample := range answers {
						store.Record(topic(topicName), sample)
					}
				}
				r, err := store.Read(subscription, second(64))
				require.NoError(t, err)
				require.InDelta(t, test.age, known(t, r.OldestAge), 0)
				require.Equal(t, second(test.at), r.OldestAt)
			}
		})
	}
}

func TestASumReportsTopicsOfAnotherType(t *testing.T) {
	tests := map[string]struct {
		orders, returns backlog.SubscriptionType
		kind, other     backlog.SubscriptionType
	}{
		"both alike":                 {orders: backlog.Shared, returns: backlog.Shared, kind: backlog.Shared},
		"one without a consumer":     {orders: backlog.NoType, returns: backlog.Failover, kind: backlog.Failover},
		"another without a consumer": {orders: backlog.KeyShared, returns: backlog.NoType, kind: backlog.KeyShared},
		"neither was consumed":       {orders: backlog.NoType, returns: backlog.NoType, kind: backlog.NoType},
		"two types": {
			orders: backlog.Shared, returns: backlog.Failover, kind: backlog.Shared, other: backlog.Failover,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			subscription := backlog.NewSubscription(cluster(), function, orders, returns)
			store.Track("me", subscription)
			for topicName, kind := range map[string]backlog.SubscriptionType{orders: test.orders, returns: test.returns} {
				store.Record(topic(topicName), answer{at: 0, subscriptionType: kind}.sample())
			}
			r, err := store.Read(subscription, second(0))
			require.NoError(t, err)
			require.Equal(t, []backlog.SubscriptionType{test.kind, test.other}, []backlog.SubscriptionType{r.Type, r.OtherType})
		})
	}
}

func TestConsumersThatShareANameAreSeveral(t *testing.T) {
	plain := func(name string) backlog.ConsumerSample { return backlog.ConsumerSample{ID: name, Name: name} }
	instance := func(id int) backlog.ConsumerSample {
		return backlog.ConsumerSample{ID: fmt.Sprintf("resize#%d", id), Name: "any"}
	}
	tests := map[string]struct {
		partitions [][]backlog.ConsumerSample
		want       float64
	}{
		"replicas of one name on one partition": {
			[][]backlog.ConsumerSample{{plain("worker"), plain("worker"), plain("worker")}}, 3,
		},
		"the same ones on each partition": {
			[][]backlog.ConsumerSample{{plain("a"), plain("b"), plain("a")}, {plain("a"), plain("a"), plain("b")}}, 3,
		},
		"some have not found the second partition": {
			[][]backlog.ConsumerSample{{plain("a"), plain("a"), plain("a")}, {plain("a")}}, 3,
		},
		"an instance that opened several is one": {
			[][]backlog.ConsumerSample{{instance(0), instance(0), instance(1)}, {instance(1)}}, 2,
		},
		"instances and plain consumers of one name beside another": {
			[][]backlog.ConsumerSample{{instance(0), plain("any"), plain("any")}}, 3,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := readAfter(t, consumed(0, test.partitions...))
			require.InDelta(t, test.want, known(t, r.Consumers), 0)
		})
	}
}

// After a seek or a network fault a consumer is back under its name before the next answer.
func TestMessagesOfALostConnectionAreNotFinished(t *testing.T) {
	held := func(at int, delivered int64, since int) backlog.TopicSample {
		return backlog.TopicSample{At: second(at), Detail: backlog.Full, Partitions: []backlog.PartitionSample{{
			Index: backlog.NotPartitioned, PublishedMessages: 500, Subscriptions: []backlog.SubscriptionSample{{
				Name: function, Type: backlog.Shared, BacklogEntries: 500, UnackedMessages: 100, DeliveredMessages: delivered,
				Consumers: []backlog.ConsumerSample{{
					ID: "resize#0", Name: "x1y2z", ConnectedSince: second(since), UnackedMessages: 100,
				}},
			}},
		}}}
	}
	tests := map[string]struct {
		since int
		want  float64
	}{
		"the connection stayed: 100 were finished": {since: 0, want: 10},
		"it reconnected: 100 were delivered twice": {since: 12, want: 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := readAfter(t, held(0, 100, 0), held(10, 100, 0), held(15, 200, test.since), held(20, 200, test.since))
			require.InDelta(t, 10, known(t, r.DeliveryRate), 1e-9)
			require.InDelta(t, test.want, known(t, r.ProcessRate), 1e-9)
		})
	}
}

func TestMessagesThatNoConsumerHoldsAreNotFinishedLater(t *testing.T) {
	at := func(seconds int, delivered, unacked int64, consumers ...backlog.ConsumerSample) backlog.TopicSample {
		return backlog.TopicSample{At: second(seconds), Detail: backlog.Full, Partitions: []backlog.PartitionSample{{
			Index: backlog.NotPartitioned, PublishedMessages: 500, Subscriptions: []backlog.SubscriptionSample{{
				Name: function, Type: backlog.Shared, BacklogEntries: 500, UnackedMessages: unacked, DeliveredMessages: delivered,
				Consumers: consumers,
			}},
		}}}
	}
	holds := func(messages int64, name string) backlog.ConsumerSample {
		return backlog.ConsumerSample{ID: name, Name: name, UnackedMessages: messages}
	}
	// In the second answer one has just left, and the broker's sum still includes it.
	for name, answers := range map[string][]backlog.TopicSample{
		"the only consumer leaves": {
			at(0, 100, 100, holds(100, "x1y2z")), at(5, 100, 100), at(10, 200, 100, holds(100, "z9y8x")),
		},
		"one of two leaves, and the other gets its messages": {
			at(0, 100, 100, holds(100, "x1y2z"), holds(0, "z9y8x")), at(5, 100, 100, holds(0, "z9y8x")),
			at(10, 200, 100, holds(100, "z9y8x")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.InDelta(t, 0, known(t, readAfter(t, answers...).ProcessRate), 0)
		})
	}
}
