// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/stretchr/testify/require"

	bench "github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
)

const (
	patience = cluster.WaitLimit
	often    = 20 * time.Millisecond
)

// sharedBroker is the one broker of this package's tests.
var sharedBroker = shared.New("a real broker", func(ctx context.Context) (*broker.Broker, error) {
	return broker.Start(ctx, broker.Config{Progress: os.Stderr, Worker: broker.WorkerOff})
}, (*broker.Broker).Discard)

func TestMain(m *testing.M) { shared.Main(m, sharedBroker) }

// begin connects a publisher to a topic of its own.
func begin(t *testing.T, config load.Config) *load.Publisher {
	t.Helper()
	b := sharedBroker.Need(t)
	require.NoError(t, b.CreateTopic(t.Context(), config.Topic, 0))
	config.ServiceURL, config.Topic = b.ServiceURL(), broker.TopicName(config.Topic)
	p, err := load.New(config)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// publish publishes n messages within a second until the broker has them, and between may disturb it.
func publish(t *testing.T, p *load.Publisher, n int64, between func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	end := make(chan error, 1)
	go func() { end <- p.Run(ctx, load.Burst(float64(n), 0, time.Second)) }()
	between()
	require.Eventually(t, func() bool { return p.Published() >= n }, patience, often)
	cancel()
	require.NoError(t, <-end)
	require.Equal(t, n, p.Published())
	require.Zero(t, p.Failed())
}

// counters are the messages and the entries that the broker has counted.
func counters(t *testing.T, topic string) (messages, entries int64) {
	t.Helper()
	var got struct {
		MsgInCounter        int64 `json:"msgInCounter"`
		EntriesAddedCounter int64 `json:"entriesAddedCounter"`
	}
	for _, resource := range []string{"stats", "internalStats"} {
		status, answer, err := sharedBroker.Need(t).Admin(t.Context(), http.MethodGet,
			"/admin/v2/persistent/public/default/"+topic+"/"+resource, nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status, "%s", answer)
		require.NoError(t, json.Unmarshal(answer, &got))
	}
	return got.MsgInCounter, got.EntriesAddedCounter
}

func TestPublisherCountsWhatTheBrokerHas(t *testing.T) {
	for name, test := range map[string]struct {
		batching load.Batching
		entries  func(t *testing.T, entries int64)
	}{
		"single": {
			load.BatchingOff,
			func(t *testing.T, entries int64) { t.Helper(); require.EqualValues(t, 2000, entries) },
		},
		"batched": {load.BatchingOn, func(t *testing.T, entries int64) { t.Helper(); require.Less(t, entries, int64(1000)) }},
	} {
		t.Run(name, func(t *testing.T) {
			p := begin(t, load.Config{Topic: name, Batching: test.batching})
			publish(t, p, 2000, func() {})
			messages, entries := counters(t, name)
			require.EqualValues(t, 2000, messages)
			test.entries(t, entries)
		})
	}
}

func TestPublisherCatchesUpAfterTheBrokerStalled(t *testing.T) {
	p := begin(t, load.Config{Topic: "stalled"})
	publish(t, p, 3000, func() {
		require.Eventually(t, func() bool { return p.Published() > 100 }, patience, often)
		require.NoError(t, sharedBroker.Need(t).Pause())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := sharedBroker.Need(t).Admin(ctx, http.MethodGet, "/admin/v2/brokers/health", nil)
		require.Error(t, err)
		require.NoError(t, sharedBroker.Need(t).Resume())
	})
}

func TestPublisherWritesSequenceKeyAndSize(t *testing.T) {
	p := begin(t, load.Config{Topic: "content", Bytes: 100, Keys: 3})
	publish(t, p, 6, func() {})
	client, err := broker.Connect(sharedBroker.Need(t).ServiceURL(), "")
	require.NoError(t, err)
	defer client.Close()
	reader, err := client.CreateReader(pulsar.ReaderOptions{
		Topic:          broker.TopicName("content"),
		StartMessageID: pulsar.EarliestMessageID(),
	})
	require.NoError(t, err)
	defer reader.Close()
	for i := range uint64(6) {
		message, err := reader.Next(t.Context())
		require.NoError(t, err)
		sequence, ok := bench.Sequence(message.Payload())
		require.True(t, ok)
		require.Equal(t, i+1, sequence)
		require.Len(t, message.Payload(), 100)
		require.Equal(t, strconv.FormatUint((i+1)%3, 10), message.Key())
	}
}
