// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// An outage is not observed: two answers with ten minutes between them show neither that there was a backlog and
// replicas were busy throughout, nor the current arrivals.
func TestAnOutageIsNoWindowToMeasureOver(t *testing.T) {
	store := newStore(t)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	store.Track("policy", subscription)
	record := func(a answer) backlog.Reading {
		store.Record(topic(orders), a.sample())
		r, err := store.Read(subscription, a.sample().At)
		require.NoError(t, err)
		return r
	}
	record(answer{at: 0, published: 1000, entries: 1000, backlogEntries: 500, delivered: 500, consumers: 2})
	record(answer{at: 10, published: 2000, entries: 2000, backlogEntries: 500, delivered: 1500, consumers: 2})
	store.Fail(topic(orders), backlog.ErrUnreachable)

	r := record(answer{at: 610, published: 3000, entries: 3000, backlogEntries: 500, delivered: 2500, consumers: 2})
	require.InDelta(t, 500, known(t, r.Ready), 1e-9)
	unknown(t, backlog.ErrNoRate, r.PublishRate, r.ProcessRate)

	r = record(answer{at: 620, published: 4000, entries: 4000, backlogEntries: 500, delivered: 3500, consumers: 2})
	require.InDelta(t, 100, known(t, r.PublishRate), 1e-9)
	require.InDelta(t, 100, known(t, r.ProcessRate), 1e-9)
	require.Equal(t, 10*time.Second, r.Window)
	require.True(t, r.SteadyConsumers)
}

// The measurements of a deleted subscription do not belong to one that is recreated under its name.
func TestARecreatedSubscriptionStartsWithoutHistory(t *testing.T) {
	r := readAfter(t,
		answer{at: 0, published: 1000, entries: 1000, backlogEntries: 500, delivered: 500, consumers: 2}.sample(),
		answer{at: 5, published: 1000, entries: 1000, noSubscription: true}.sample(),
		answer{at: 8, published: 1000, entries: 1000, slim: true}.sample())
	require.Zero(t, r.Window)
	require.False(t, r.SteadyConsumers)
	unknown(t, backlog.ErrNotRequested, r.Consumers)
}
