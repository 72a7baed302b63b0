// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const notPartitioned = `{"partitions":0,"deleted":false}`

func TestFetchTopicThatIsNotPartitioned(t *testing.T) {
	broker := newFakeBroker(t)
	broker.on("orders/partitions", answers(notPartitioned))
	broker.on("orders/stats", answers(string(fixture(t, "4.0.8-topic-stats-function-p2.json"))))
	broker.on("orders/internalStats", answers(string(fixture(t, "4.0.8-internalStats.json"))))
	source := newSource(t, Config{}, broker)
	sent := time.Unix(1000, 0)
	source.now = func() time.Time { return sent }

	sample, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Full})

	require.NoError(t, err)
	entries := int64(10)
	require.Equal(t, backlog.TopicSample{
		At:     sent,
		Detail: backlog.Full,
		Partitions: []backlog.PartitionSample{{
			Index:             backlog.NotPartitioned,
			PublishedMessages: 20,
			PublishedBytes:    1005,
			AddedEntries:      &entries,
			Subscriptions: []backlog.SubscriptionSample{{
				Name:              "public/default/sf2",
				Type:              backlog.Shared,
				BacklogEntries:    1,
				UnackedMessages:   1,
				DeliveredMessages: 20,
				Consumers: []backlog.ConsumerSample{
					{
						ID: "public/default/sf2#1", Name: "m0LVv", Component: "public/default/sf2", MeanBatch: 1, Permits: 990,
						UnackedMessages: 1,
						ConnectedSince:  time.Date(2026, 11, 21, 13, 17, 53, 184077298, time.UTC),
					},
					{
						ID: "public/default/sf2#0", Name: "X4JJ9", Component: "public/default/sf2", MeanBatch: 1, Permits: 990,
						ConnectedSince: time.Date(2026, 11, 21, 13, 17, 53, 193813744, time.UTC),
					},
				},
			}},
		}},
	}, sample)
	require.Equal(t, []string{"orders/partitions", "orders/stats", "orders/internalStats"}, broker.requested())
}

func TestFetchRequestsNoMoreThanItNeeds(t *testing.T) {
	tests := map[string]struct {
		partitions int
		detail     backlog.Detail
		query      string
		last       string
	}{
		"a slim fetch leaves out consumers and internal stats": {
			detail: backlog.Slim, last: "orders/stats",
			query: "excludeConsumers=true&excludePublishers=true&getEarliestTimeInBacklog=false&getPreciseBacklog=false&subscriptionBacklogSize=false",
		},
		"a full fetch has consumers": {
			detail: backlog.Full, last: "orders/internalStats",
			query: "excludeConsumers=false&excludePublishers=true&getEarliestTimeInBacklog=false&getPreciseBacklog=false&subscriptionBacklogSize=false",
		},
		"partitions are requested one by one": {
			partitions: 2, detail: backlog.Slim, last: "orders/partitioned-stats",
			query: "excludeConsumers=true&excludePublishers=true&getEarliestTimeInBacklog=false&getPreciseBacklog=false&perPartition=true&subscriptionBacklogSize=false",
		},
		"requests expensive details by name": {
			detail: backlog.Precise | backlog.Age | backlog.Bytes, last: "orders/stats",
			query: "excludeConsumers=true&excludePublishers=true&getEarliestTimeInBacklog=true&getPreciseBacklog=true&subscriptionBacklogSize=true",
		},
		"and of partitions": {
			partitions: 2, detail: backlog.Age, last: "orders/partitioned-stats",
			query: "excludeConsumers=true&excludePublishers=true&getEarliestTimeInBacklog=true&getPreciseBacklog=false&perPartition=true&subscriptionBacklogSize=false",
		},
		"a full fetch of partitions reads their internal stats": {
			partitions: 2, detail: backlog.Full, last: "orders/partitioned-internalStats",
			query: "excludeConsumers=false&excludePublishers=true&getEarliestTimeInBacklog=false&getPreciseBacklog=false&perPartition=true&subscriptionBacklogSize=false",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			broker.on("orders/partitions", answers(fmt.Sprintf(`{"partitions":%d}`, tt.partitions)))
			broker.on("orders/stats", answers(`{"msgInCounter":0,"subscriptions":{}}`))
			broker.on("orders/partitioned-stats", answers(partitioned("orders", 2, 0, 1)))

			_, err := newSource(t, Config{}, broker).Fetch(t.Context(), broker.topic("orders"),
				backlog.Request{Detail: tt.detail})

			require.NoError(t, err)
			require.Equal(t, tt.query, broker.request(1).URL.Query().Encode())
			require.Equal(t, tt.last, broker.requested()[len(broker.requested())-1])
		})
	}
}

// partitioned is an answer of /partitioned-stats where partition i has published i*10 messages.
func partitioned(topic string, count int, there ...int) string {
	var parts []string
	for _, i := range there {
		parts = append(parts,
			fmt.Sprintf(`"persistent://public/default/%s-partition-%d":{"msgInCounter":%d,"subscriptions":{}}`, topic, i, i*10))
	}
	return fmt.Sprintf(`{"metadata":{"partitions":%d,"deleted":false},"partitions":{%s}}`, count, strings.Join(parts, ","))
}

func TestFetchWhilePartitionsChange(t *testing.T) {
	twoOf := answers(partitioned("orders", 2, 1, 0))
	fourOf := answers(partitioned("orders", 4, 3, 1, 0, 2))
	gone := says(http.StatusNotFound, "Topic persistent://public/default/orders not found")
	whole := answers(`{"msgInCounter":0,"subscriptions":{}}`)
	tests := map[string]struct {
		partitions []http.HandlerFunc
		stats      []http.HandlerFunc
		whole      []http.HandlerFunc
		first      int
		second     int
		requested  []string
	}{
		"reads added partitions from the answer itself": {
			partitions: []http.HandlerFunc{answers(`{"partitions":2}`)},
			stats:      []http.HandlerFunc{twoOf, fourOf},
			first:      2, second: 4,
			requested: []string{"orders/partitions", "orders/partitioned-stats", "orders/partitioned-stats"},
		},
		"reads again when the topic was recreated with fewer partitions": {
			partitions: []http.HandlerFunc{answers(`{"partitions":4}`), answers(`{"partitions":2}`)},
			stats:      []http.HandlerFunc{fourOf, twoOf},
			first:      4, second: 2,
			requested: []string{
				"orders/partitions", "orders/partitioned-stats", "orders/partitioned-stats", "orders/partitions",
				"orders/partitioned-stats",
			},
		},
		"reads again when the topic became partitioned": {
			partitions: []http.HandlerFunc{answers(notPartitioned), answers(`{"partitions":2}`)},
			whole:      []http.HandlerFunc{whole, gone},
			stats:      []http.HandlerFunc{twoOf},
			first:      1, second: 2,
			requested: []string{
				"orders/partitions", "orders/stats", "orders/stats", "orders/partitions",
				"orders/partitioned-stats",
			},
		},
		"reads again when the topic is no longer partitioned": {
			partitions: []http.HandlerFunc{answers(`{"partitions":2}`), answers(notPartitioned)},
			whole:      []http.HandlerFunc{whole},
			stats:      []http.HandlerFunc{twoOf, gone},
			first:      2, second: 1,
			requested: []string{
				"orders/partitions", "orders/partitioned-stats", "orders/partitioned-stats", "orders/partitions",
				"orders/stats",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			broker.on("orders/partitions", tt.partitions...)
			broker.on("orders/stats", tt.whole...)
			broker.on("orders/partitioned-stats", tt.stats...)
			source := newSource(t, Config{}, broker)

			sample, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
			require.NoError(t, err)
			require.Len(t, sample.Partitions, tt.first)
			sample, err = source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
			require.NoError(t, err)
			require.Len(t, sample.Partitions, tt.second)
			require.Equal(t, tt.requested, broker.requested())
		})
	}
}

func TestPartitionCountIsConfirmedByGoodAnswersAndReadAgainAfterItsTime(t *testing.T) {
	broker := newFakeBroker(t)
	broker.on("orders/partitions", answers(notPartitioned))
	broker.on("orders/stats", answers(`{"msgInCounter":0,"subscriptions":{}}`))
	source := newSource(t, Config{}, broker)
	now := time.Unix(1000, 0)
	source.now = func() time.Time { return now }
	for _, step := range []time.Duration{0, 59 * time.Second, 59 * time.Second, time.Minute} {
		now = now.Add(step)
		_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
		require.NoError(t, err)
	}
	require.Equal(t,
		[]string{
			"orders/partitions", "orders/stats", "orders/stats", "orders/stats", "orders/partitions",
			"orders/stats",
		}, broker.requested())
}

func TestFetchesMayRunAtTheSameTime(t *testing.T) {
	broker := newFakeBroker(t)
	for i := range 4 {
		name := fmt.Sprint("topic", i)
		broker.on(name+"/partitions", answers(`{"partitions":2}`))
		broker.on(name+"/partitioned-stats", answers(partitioned(name, 2, 0, 1)))
	}
	source := newSource(t, Config{MaxConnsPerHost: 3, Own: ownToken(t, "secret")}, broker)
	details := []backlog.Detail{backlog.Slim, backlog.Full}
	var group errgroup.Group
	for i := range 64 {
		group.Go(func() error {
			sample, err := source.Fetch(t.Context(), broker.topic(fmt.Sprint("topic", i%4)),
				backlog.Request{Detail: details[i%2]})
			if err == nil && len(sample.Partitions) != 2 {
				return fmt.Errorf("%d partitions", len(sample.Partitions))
			}
			return err
		})
	}
	require.NoError(t, group.Wait())
}

func TestTopicNamesAreEscaped(t *testing.T) {
	broker := newFakeBroker(t)
	source := newSource(t, Config{}, broker)
	_, err := source.Fetch(t.Context(), broker.topic(`a b+c%2F?d#é`), backlog.Request{Detail: backlog.Slim})
	require.ErrorIs(t, err, backlog.ErrTopicNotFound)
	require.Equal(t, "/admin/v2/persistent/public/default/a+b%2Bc%252F%3Fd%23%C3%A9/partitions",
		broker.request(0).RequestURI)
}
