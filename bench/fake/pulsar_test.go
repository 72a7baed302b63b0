// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
)

// TestTheAdaptersReaderUnderstandsTheAnswers: the numbers are those of the load.
func TestTheAdaptersReaderUnderstandsTheAnswers(t *testing.T) {
	begun := time.Unix(1_800_000_000, 0)
	now := begun.Add(10 * time.Second)
	loads := Loads{"fn-0000": NewLoad(10, begun), "fn-0002": NewLoad(60, begun)}
	server := httptest.NewServer(loads.Pulsar(func() time.Time { return now }))
	defer server.Close()
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	source, err := pulsar.New(pulsar.Config{Registerer: prometheus.NewRegistry(), AllowedHosts: []string{address.Host}})
	require.NoError(t, err)
	defer source.Close()

	const last = "fn-0002"
	loads[last].Scale(2, begun)
	topic := backlog.Topic{Cluster: backlog.Cluster{AdminURL: server.URL}, Name: TopicOf(last)}
	sample, err := source.Fetch(t.Context(), topic, backlog.Request{Detail: backlog.Full})
	require.NoError(t, err)
	require.Len(t, sample.Partitions, 1)
	want := loads[last].Counts(now)
	require.Equal(t, want.Published, sample.Partitions[0].PublishedMessages)
	require.Len(t, sample.Partitions[0].Subscriptions, 1)
	subscription := sample.Partitions[0].Subscriptions[0]
	require.Equal(t, "public/default/"+last, subscription.Name)
	require.Equal(t, want.Done, subscription.DeliveredMessages)
	require.Len(t, subscription.Consumers, 2)
	require.NotNil(t, sample.Partitions[0].AddedEntries)

	slim, err := source.Fetch(t.Context(), topic, backlog.Request{Detail: 0})
	require.NoError(t, err)
	require.Empty(t, slim.Partitions[0].Subscriptions[0].Consumers)

	topic.Name = TopicOf("missing")
	_, err = source.Fetch(t.Context(), topic, backlog.Request{Detail: backlog.Full})
	require.ErrorIs(t, err, backlog.ErrTopicNotFound)
	recorder := httptest.NewRecorder()
	loads.Pulsar(time.Now).ServeHTTP(recorder,
		httptest.NewRequestWithContext(t.Context(), http.MethodGet,
			"/admin/v2/persistent/public/default/fn-0000-in/compaction", http.NoBody))
	require.Equal(t, http.StatusNotFound, recorder.Code)
}

func TestResponsesAreCompressed(t *testing.T) {
	begun := time.Unix(1_800_000_000, 0)
	address := Loads{"fn-0000": NewLoad(10, begun)}.Pulsar(time.Now).Serve(t.Context())
	for path, code := range map[string]int{
		"fn-0000-in/partitions": http.StatusOK, "fn-0000-in/stats": http.StatusOK, "missing/stats": http.StatusNotFound,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+topicsPath+path, http.NoBody)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.Equal(t, code, response.StatusCode)
		require.True(t, response.Uncompressed, path)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.True(t, json.Valid(body), path)
		require.NoError(t, response.Body.Close())
	}
}
