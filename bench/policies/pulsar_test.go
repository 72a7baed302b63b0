// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/fake"
)

// TestTheAdaptersReaderUnderstandsTheAnswers: the numbers are those of the load.
func TestTheAdaptersReaderUnderstandsTheAnswers(t *testing.T) {
	begun := time.Unix(1_800_000_000, 0)
	now := begun.Add(10 * time.Second)
	works := newWorks(3, begun)
	server := httptest.NewServer(pulsarOf(works, func() time.Time { return now }))
	defer server.Close()
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	source, err := pulsar.New(pulsar.Config{Registerer: prometheus.NewRegistry(), AllowedHosts: []string{address.Host}})
	require.NoError(t, err)
	defer source.Close()

	const last = 2
	works[functionName(last)].scale(2, begun)
	topic := backlog.Topic{Cluster: backlog.Cluster{AdminURL: server.URL}, Name: fake.TopicOf(functionName(last))}
	sample, err := source.Fetch(t.Context(), topic, backlog.Request{Detail: backlog.Full})
	require.NoError(t, err)
	require.Len(t, sample.Partitions, 1)
	want := works[functionName(last)].counts(now)
	require.Equal(t, want.Published, sample.Partitions[0].PublishedMessages)
	require.Len(t, sample.Partitions[0].Subscriptions, 1)
	subscription := sample.Partitions[0].Subscriptions[0]
	require.Equal(t, "public/default/"+functionName(last), subscription.Name)
	require.Equal(t, want.Done, subscription.DeliveredMessages)
	require.Len(t, subscription.Consumers, 2)
	require.NotNil(t, sample.Partitions[0].AddedEntries)

	slim, err := source.Fetch(t.Context(), topic, backlog.Request{Detail: 0})
	require.NoError(t, err)
	require.Empty(t, slim.Partitions[0].Subscriptions[0].Consumers)

	topic.Name = fake.TopicOf("missing")
	_, err = source.Fetch(t.Context(), topic, backlog.Request{Detail: backlog.Full})
	require.ErrorIs(t, err, backlog.ErrTopicNotFound)
	recorder := httptest.NewRecorder()
	pulsarOf(works, time.Now).ServeHTTP(recorder,
		httptest.NewRequestWithContext(t.Context(), http.MethodGet,
			"/admin/v2/persistent/public/default/fn-0000-in/compaction", http.NoBody))
	require.Equal(t, http.StatusNotFound, recorder.Code)
}

func TestLoadsSwingAndNothingIsDoneBeforeItIsPublished(t *testing.T) {
	begun := time.Unix(1_800_000_000, 0)
	for i := range 10 {
		w := newWork(i, 10, begun)
		w.scale(1+i%3, begun)
		least, most := w.mean, w.mean
		before := fake.Counts{}
		for second := range 480 {
			at := begun.Add(time.Duration(second) * time.Second)
			least, most = min(least, w.rate(at)), max(most, w.rate(at))
			now := w.counts(at)
			require.GreaterOrEqual(t, now.Published, before.Published)
			require.GreaterOrEqual(t, now.Done, before.Done)
			require.GreaterOrEqual(t, now.Backlog(), int64(0))
			require.LessOrEqual(t, now.Done-before.Done, int64(capacity*now.Replicas+1))
			before = now
		}
		require.Positive(t, least, "one Function always publishes")
		require.Greater(t, most, 1.4*w.mean)
		require.Less(t, least, 0.6*w.mean)
		require.InEpsilon(t, w.mean*479, float64(before.Published), 0.05, "two whole waves")
	}
}
