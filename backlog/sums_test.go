// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestWhatASumSaysOfConsumersTakesAllItsTopics(t *testing.T) {
	tests := map[string]struct {
		orders, returns []answer
		consumers       float64 // -1 when unknown
		steady          bool
	}{
		"the same two replicas on both": {
			orders: []answer{{at: 0, consumers: 2}, {at: 10, consumers: 2}}, returns: []answer{{at: 0, consumers: 2}, {at: 10, consumers: 2}},
			consumers: 2, steady: true,
		},
		"nobody looked who consumes one of them": {
			orders: []answer{{at: 0, consumers: 2}, {at: 10, consumers: 2}}, returns: []answer{{at: 0, slim: true}, {at: 10, slim: true}},
			consumers: -1,
		},
		"nobody looked who consumes the other": {
			orders: []answer{{at: 0, slim: true}, {at: 10, slim: true}}, returns: []answer{{at: 0, consumers: 2}, {at: 10, consumers: 2}},
			consumers: -1,
		},
		"one joined on one of them": {
			orders: []answer{{at: 0, consumers: 2}, {at: 10, consumers: 2}}, returns: []answer{{at: 0, consumers: 1}, {at: 10, consumers: 2}},
			consumers: 2,
		},
		"one joined on the other": {
			orders: []answer{{at: 0, consumers: 1}, {at: 10, consumers: 2}}, returns: []answer{{at: 0, consumers: 2}, {at: 10, consumers: 2}},
			consumers: 2,
		},
		"how many there were when the window began is not known": {
			orders: []answer{{at: 0, slim: true}, {at: 5, consumers: 2}, {at: 10, consumers: 2}}, returns: []answer{{at: 0, consumers: 2}, {at: 10, consumers: 2}},
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
				unknown(t, backlog.ErrNotAsked, r.Consumers, r.UnreadPartitions, r.UnreadMessages)
				return
			}
			require.InDelta(t, test.consumers, known(t, r.Consumers), 0)
		})
	}
}

func TestASumTellsTopicsOfAnotherType(t *testing.T) {
	tests := map[string]struct {
		orders, returns backlog.SubscriptionType
		kind, other     backlog.SubscriptionType
	}{
		"both alike":                   {orders: backlog.Shared, returns: backlog.Shared, kind: backlog.Shared},
		"one that nobody consumed":     {orders: backlog.NoType, returns: backlog.Failover, kind: backlog.Failover},
		"another that nobody consumed": {orders: backlog.KeyShared, returns: backlog.NoType, kind: backlog.KeyShared},
		"neither was consumed":         {orders: backlog.NoType, returns: backlog.NoType, kind: backlog.NoType},
		"two types":                    {orders: backlog.Shared, returns: backlog.Failover, kind: backlog.Shared, other: backlog.Failover},
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
