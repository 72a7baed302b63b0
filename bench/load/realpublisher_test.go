// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
)

// publishReal publishes that many messages within a second to a topic of its own, and returns a client of the broker.
func publishReal(t *testing.T, topic string, count int, messages load.Messages) pulsar.Client {
	t.Helper()
	b := sharedBroker.Need(t)
	require.NoError(t, b.CreateTopic(t.Context(), topic, 0))
	client, err := broker.Connect(b.ServiceURL(), "")
	require.NoError(t, err)
	t.Cleanup(client.Close)
	p, err := load.NewPublisher(client, load.Publishing{Topic: broker.TopicName(topic), Messages: messages})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	shape := load.Shape{
		Duration: metav1.Duration{Duration: time.Second}, Constant: &load.Constant{Rate: float64(count)},
	}
	schedule, err := shape.Schedule(nil)
	require.NoError(t, err)
	require.NoError(t, p.Run(t.Context(), schedule.Arrivals()))
	require.EqualValues(t, count, p.Published())
	return client
}

// counters are the messages and the entries that the broker has counted.
func counters(t *testing.T, topic string) (messages, entries int64) {
	t.Helper()
	var got struct {
		MsgInCounter        int64 `json:"msgInCounter"`
		EntriesAddedCounter int64 `json:"entriesAddedCounter"`
	}
	for _, resource := range []string{"stats", "internalStats"} {
		answer, err := sharedBroker.Need(t).Demand(t.Context(), http.MethodGet,
			"/admin/v2/persistent/public/default/"+topic+"/"+resource, nil)
		require.NoError(t, err)
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
			load.Batching{MaxMessages: 1},
			func(t *testing.T, entries int64) { t.Helper(); require.EqualValues(t, 2000, entries) },
		},
		"batched": {
			load.Batching{MaxMessages: 100, MaxDelay: metav1.Duration{Duration: 10 * time.Millisecond}},
			func(t *testing.T, entries int64) { t.Helper(); require.Less(t, entries, int64(1000)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			publishReal(t, name, 2000, load.Messages{Bytes: load.StampBytes, Batching: test.batching})
			messages, entries := counters(t, name)
			require.EqualValues(t, 2000, messages)
			test.entries(t, entries)
		})
	}
}

func TestPublisherWritesSequenceKeyAndSize(t *testing.T) {
	client := publishReal(t, "content", 6, load.Messages{
		Bytes: 100, Keys: load.Keys{Count: 3}, Batching: load.Batching{MaxMessages: 1},
	})
	reader, err := client.CreateReader(pulsar.ReaderOptions{
		Topic: broker.TopicName("content"), StartMessageID: pulsar.EarliestMessageID(),
	})
	require.NoError(t, err)
	defer reader.Close()
	for i := range uint64(6) {
		message, err := reader.Next(t.Context())
		require.NoError(t, err)
		sequence, ok := load.Sequence(message.Payload())
		require.True(t, ok)
		require.Equal(t, i+1, sequence)
		require.Len(t, message.Payload(), 100)
		require.Equal(t, strconv.FormatUint((i+1)%3, 10), message.Key())
	}
}
