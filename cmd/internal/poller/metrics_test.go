// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestFetchesAreShownByCluster(t *testing.T) {
	store, err := backlog.NewStore(10*time.Second, time.Minute, backlog.Bounds{})
	require.NoError(t, err)
	registry := prometheus.NewPedanticRegistry()
	f := newFetches(registry, store)
	near, far := backlog.Cluster{AdminURL: "http://near:8080"}, backlog.Cluster{AdminURL: "http://far:8080", Access: "a"}
	store.Track("one", backlog.NewSubscription(near, "s", "in", "more"))
	store.Track("two", backlog.NewSubscription(far, "s", "in"))
	store.Track("three", backlog.NewSubscription(backlog.Cluster{AdminURL: far.AdminURL, Access: "b"}, "s", "in"))
	topic := func(cluster backlog.Cluster) backlog.Job {
		return backlog.TopicJob(backlog.Topic{Cluster: cluster, Name: "persistent://public/default/in"})
	}
	f.started(topic(near), 50*time.Millisecond)
	f.started(topic(far), 7*time.Second)
	f.started(backlog.Job{Kind: backlog.NamespaceKind, Cluster: far}, time.Hour)
	shows := func(topics string) {
		t.Helper()
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP pulsar_autoscaler_topics Polled topics, by the admin URL of their cluster.
# TYPE pulsar_autoscaler_topics gauge
`+topics), "pulsar_autoscaler_topics"))
	}
	shows(`pulsar_autoscaler_topics{cluster="http://far:8080"} 2
pulsar_autoscaler_topics{cluster="http://near:8080"} 2
`)
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 2)
	require.Equal(t, "pulsar_autoscaler_poll_lateness_seconds", families[0].GetName())
	require.InDelta(t, 7.0, families[0].GetMetric()[0].GetHistogram().GetSampleSum(), 1e-9, "only topics count")

	store.Untrack("one")
	shows(`pulsar_autoscaler_topics{cluster="http://far:8080"} 2
`)
	count, err := testutil.GatherAndCount(registry, "pulsar_autoscaler_poll_lateness_seconds")
	require.NoError(t, err)
	require.Equal(t, 1, count, "a cluster without topics has no series")
}
