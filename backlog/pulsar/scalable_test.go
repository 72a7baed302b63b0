// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// answersWithBacklog is the form as of apache/pulsar#26639, by its source. Segment 2 did not answer the broker.
const answersWithBacklog = `{"layout":{"epoch":3,"segments":{
	"1":{"name":"segment://public/default/orders/0000-7fff-1","state":"SEALED","childIds":[3],"ownerBroker":"b:8080"},
	"2":{"name":"segment://public/default/orders/8000-ffff-2","state":"ACTIVE"},
	"3":{"name":"segment://public/default/orders/0000-7fff-3","state":"ACTIVE","ownerBroker":"b:8080"}}},
	"msgRateIn":3.5,"producers":[{"producerName":"p"}],"subscriptions":{
	"stream":{"type":"STREAM","msgBacklog":7,"segments":{"1":{"msgBacklog":7,"consumerCount":1}},
		"consumers":[{"consumerName":"c-0","connected":true,"segmentIds":[1]},{"consumerName":"c-1","connected":false}]},
	"queue":{"type":"QUEUE","msgBacklog":2,"segments":{"1":{"consumerCount":3},"3":{"msgBacklog":2,"consumerCount":4}},
		"consumers":[{"consumerName":"q","connected":true}]}}}`

func scalable(broker *fakeBroker, name string) backlog.Topic {
	topic := broker.topic(name)
	topic.Name = "topic://public/default/" + name
	return topic
}

func TestScalableTopic(t *testing.T) {
	fixtureAnswer := func(name string) http.HandlerFunc { return answers(string(fixture(t, name))) }
	absent := func(name string) http.HandlerFunc {
		return sends(http.StatusNotFound, "application/json", string(fixture(t, name)))
	}
	gone, without := absent("5.0.0-M1-segment-gone.json"), absent("5.0.0-M1-segment-without-subscription.json")
	segments := []string{"8000-ffff-2", "4000-ffff-5", "0000-1fff-6", "2000-3fff-7"}
	for name, test := range map[string]struct {
		stats         http.HandlerFunc
		segments      [4]http.HandlerFunc
		subscription  string
		detail        backlog.Detail
		want          []backlog.SubscriptionSample
		partial, slim bool
	}{
		"5.0.0-M1: sums the segments' backlogs": {
			stats: fixtureAnswer("5.0.0-M1-scalable.json"), subscription: "sub", slim: true,
			segments: [4]http.HandlerFunc{answers("100"), answers("2"), answers("0"), answers("1")},
			want:     []backlog.SubscriptionSample{{Name: "sub", Type: backlog.Stream, BacklogEntries: 103}},
		},
		"5.0.0-M1: a segment that is not loaded makes the sum partial": {
			stats: fixtureAnswer("5.0.0-M1-scalable.json"), subscription: "sub", slim: true, partial: true,
			segments: [4]http.HandlerFunc{answers("100"), gone, answers("0"), answers("1")},
			want:     []backlog.SubscriptionSample{{Name: "sub", Type: backlog.Stream, BacklogEntries: 101}},
		},
		"5.0.0-M1: counts no consumers of QUEUE": {
			stats: fixtureAnswer("5.0.0-M1-scalable.json"), subscription: "queue", slim: true,
			segments: [4]http.HandlerFunc{without, answers("2"), answers("0"), answers("1")},
			want:     []backlog.SubscriptionSample{{Name: "queue", Type: backlog.NoType, BacklogEntries: 3}},
		},
		"5.0.0-M1: a subscription that no segment has is missing": {
			stats: fixtureAnswer("5.0.0-M1-scalable.json"), subscription: "other", slim: true,
			segments: [4]http.HandlerFunc{without, without, without, without},
		},
		"later: STREAM has its connected consumers": {
			stats: answers(answersWithBacklog), subscription: "stream", partial: true,
			want: []backlog.SubscriptionSample{{Name: "stream", Type: backlog.Stream, BacklogEntries: 7, MoreConsumers: 1}},
		},
		"later: QUEUE has the consumers of a segment": {
			stats: answers(answersWithBacklog), subscription: "queue", partial: true,
			want: []backlog.SubscriptionSample{{Name: "queue", Type: backlog.Shared, BacklogEntries: 2, MoreConsumers: 4}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			broker.on("/admin/v2/scalable/public/default/orders/stats", test.stats)
			for i, answer := range test.segments {
				if answer != nil {
					broker.on("/admin/v2/segments/public/default/orders/"+segments[i]+"/subscription/"+test.subscription+
						"/backlog", answer)
				}
			}
			source := newSource(t, Config{}, broker)
			sent := time.Unix(1000, 0)
			source.now = func() time.Time { return sent }
			request := backlog.Request{Detail: backlog.Full, Subscriptions: []string{test.subscription}}

			sample, err := source.Fetch(t.Context(), scalable(broker, "orders"), request)

			require.NoError(t, err)
			require.Equal(t, sent, sample.At)
			require.Equal(t, !test.slim, sample.Detail == backlog.Consumers)
			require.Equal(t, test.partial, errors.Is(sample.Incomplete, backlog.ErrPartial))
			require.ErrorIs(t, sample.Uncounted, backlog.ErrNotReported)
			require.Equal(t, []backlog.PartitionSample{{Index: backlog.NotPartitioned, Subscriptions: test.want}},
				sample.Partitions)
			require.Equal(t, sample, source.AddEntries(t.Context(), scalable(broker, "orders"), sample))
		})
	}
}

func TestScalableTopicThatDoesNotExist(t *testing.T) {
	broker := newFakeBroker(t)
	broker.on("/admin/v2/scalable/public/default/missing/stats", says(http.StatusInternalServerError,
		"An unexpected error occurred in the server"))
	broker.on("/admin/v2/scalable/public/default/missing", sends(http.StatusNotFound, "application/json",
		string(fixture(t, "5.0.0-M1-scalable-missing.json"))))

	_, err := newSource(t, Config{}, broker).Fetch(t.Context(), scalable(broker, "missing"), backlog.Request{})

	require.ErrorIs(t, err, backlog.ErrTopicNotFound)
	require.ErrorContains(t, err, "Scalable topic not found: topic://public/default/missing")
}

func manySegments(count int) string {
	segments := make([]string, count)
	for i := range segments {
		segments[i] = fmt.Sprintf(`"%d":{}`, i)
	}
	return `{"segments":{` + strings.Join(segments, ",") + `}}`
}

func TestDecodeScalableStatsRefuses(t *testing.T) {
	for name, test := range map[string]struct{ answer, want string }{
		"an answer without segments": {`{"subscriptions":{}}`, "segments is missing"},
		"an answer without one of the backlogs": {
			`{"segments":{"0":{}},"subscriptions":{"a":{"msgBacklog":1},"b":{}}}`, "subscription b: msgBacklog is missing",
		},
		"a negative backlog": {
			`{"segments":{"0":{}},"subscriptions":{"a":{"msgBacklog":-1}}}`, "subscription a: msgBacklog is -1",
		},
		"too many segments": {
			manySegments(maxSegments + 1), "more than 256 segments",
		},
	} {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			broker.on("/admin/v2/scalable/public/default/orders/stats", answers(test.answer))
			_, err := newSource(t, Config{}, broker).Fetch(t.Context(), scalable(broker, "orders"), backlog.Request{})
			require.ErrorIs(t, err, backlog.ErrProtocol)
			require.ErrorContains(t, err, test.want)
		})
	}
}
