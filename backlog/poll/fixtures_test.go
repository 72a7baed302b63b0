// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	orders     = "persistent://public/default/orders"
	returns    = "persistent://public/default/returns"
	in1        = "persistent://public/default/in-1"
	in2        = "persistent://public/default/in-2"
	function   = "public/default/resize"
	rateWindow = 10 * time.Second
	staleAfter = time.Minute
)

func newStore(t testing.TB) *backlog.Store {
	t.Helper()
	store, err := backlog.NewStore(rateWindow, staleAfter, backlog.Bounds{})
	require.NoError(t, err)
	return store
}

func cluster() backlog.Cluster { return backlog.Cluster{AdminURL: "http://pulsar:8080"} }

func topic(name string) backlog.Topic { return backlog.Topic{Cluster: cluster(), Name: name} }

func namespace() backlog.Namespace {
	return backlog.Namespace{Cluster: cluster(), Name: "public/default"}
}

// matching is a subscription of topics by patterns, and of others by name.
func matching(t testing.TB, pattern string, topics ...string) backlog.Subscription {
	t.Helper()
	parsed, err := backlog.ParsePattern(pattern)
	require.NoError(t, err)
	return backlog.NewSubscription(cluster(), function, topics...).WithPatterns(parsed)
}

// sampleOf is an answer of one partition with this backlog and without consumers.
func sampleOf(at time.Time, detail backlog.Detail, backlogEntries int64) backlog.TopicSample {
	partition := backlog.PartitionSample{
		Index: backlog.NotPartitioned,
		Subscriptions: []backlog.SubscriptionSample{
			{Name: function, Type: backlog.Shared, BacklogEntries: backlogEntries},
		},
	}
	answered := backlog.Slim
	if detail.Has(backlog.Consumers) {
		answered, partition.AddedEntries = backlog.Full, new(int64)
	}
	return backlog.TopicSample{At: at, Detail: answered, Partitions: []backlog.PartitionSample{partition}}
}

func known(t *testing.T, m backlog.Measurement) float64 {
	t.Helper()
	value, err := m.Value()
	require.NoError(t, err)
	return value
}
