// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnExactCountHoldsUntilSomethingIsPublishedOnAnyTopic(t *testing.T) {
	store, err := NewStore(10*time.Second, time.Minute, Bounds{})
	require.NoError(t, err)
	subscription := NewSubscription(Cluster{}, "s", "a", "b")
	store.Track("me", subscription)
	at := func(second int) time.Time { return midday().Add(time.Duration(second) * time.Second) }
	record := func(name string, second int, detail Detail, published int64) {
		store.Record(Topic{Name: "persistent://public/default/" + name},
			TopicSample{At: at(second), Detail: detail, Partitions: []PartitionSample{{
				Index: NotPartitioned, PublishedMessages: published, Subscriptions: []SubscriptionSample{{Name: "s"}},
			}}})
	}
	exactAt := func(second int) time.Time {
		reading, err := store.Read(subscription, at(second))
		require.NoError(t, err)
		return reading.ExactAt
	}
	record("a", 0, Full, 5)
	record("b", 0, Full, 5)
	require.Zero(t, exactAt(0))
	record("a", 10, Precise, 5)
	require.Zero(t, exactAt(10), "one of two is not all")
	record("b", 20, Precise, 5)
	require.Equal(t, at(10), exactAt(20), "the older of the two")
	record("a", 30, Slim, 5)
	require.Equal(t, at(10), exactAt(30), "it holds while nothing is published")
	record("a", 40, Slim, 6)
	require.Zero(t, exactAt(40))
	record("a", 50, Precise, 6)
	require.Equal(t, at(20), exactAt(50))
	record("b", 60, Slim, 0)
	require.Zero(t, exactAt(60), "a topic that was loaded again has to be counted again")
}

func TestAnExactCountEndsWithAnotherBacklog(t *testing.T) {
	store, err := NewStore(10*time.Second, time.Minute, Bounds{})
	require.NoError(t, err)
	topic, subscription := Topic{Name: "persistent://public/default/a"}, NewSubscription(Cluster{}, "s", "a")
	store.Track("me", subscription)
	at := func(second int) time.Time { return midday().Add(time.Duration(second) * time.Second) }
	for i, detail := range []Detail{Full, Consumers | Precise, Consumers, Consumers} {
		entries := []int64{5000, 5000, 5000, 0}[i]
		store.Record(topic, TopicSample{At: at(10 * i), Detail: detail, Partitions: []PartitionSample{{
			Index: NotPartitioned, PublishedMessages: 5000, Subscriptions: []SubscriptionSample{{
				Name: "s", BacklogEntries: entries, DeliveredMessages: 5000 - entries,
			}},
		}}})
		reading, err := store.Read(subscription, at(10*i))
		require.NoError(t, err)
		require.Equal(t, i == 1 || i == 2, !reading.ExactAt.IsZero(), "answer %d", i)
	}
	require.True(t, store.Feed(false).NextRequest(topic, at(40)).Detail.Has(Precise))
}

func TestAQuickCountIsCheckedWhileMessagesFlow(t *testing.T) {
	store, err := NewStore(10*time.Second, time.Minute, Bounds{})
	require.NoError(t, err)
	topic, subscription := Topic{Name: "persistent://public/default/a"}, NewSubscription(Cluster{}, "s", "a")
	store.Track("me", subscription)
	feed := store.Feed(false)
	second, exact, twice := 0, 0, 0
	drifted := func() int64 { return int64(200 * second) } // slowly enough that no quick count contradicts the one before
	fetch := func(detail Detail) TopicSample {
		entries := int64(5_000)
		if !detail.Has(Precise) {
			entries += drifted()
		}
		messages := int64(100 * second)
		return TopicSample{
			At: midday().Add(time.Duration(second) * time.Second), Detail: detail, Partitions: []PartitionSample{{
				Index: NotPartitioned, PublishedMessages: 90_000 + messages, Subscriptions: []SubscriptionSample{{
					Name: "s", BacklogEntries: entries, DeliveredMessages: 50_000 + messages,
				}},
			}},
		}
	}
	for ; second < 300; second += 10 {
		now := midday().Add(time.Duration(second) * time.Second)
		detail := feed.NextRequest(topic, now).Detail
		sample := fetch(detail)
		if feed.CheckPlausible(topic, sample, nil) != nil {
			twice++
			again := fetch(detail | Precise)
			require.NoError(t, feed.CheckSecond(topic, sample, again))
			sample = again
		}
		store.Record(topic, sample)
		if detail.Has(Precise) {
			exact++
		}
		reading, err := store.Read(subscription, now)
		require.NoError(t, err)
		want := 5_000.0
		if second < 60 {
			want += float64(drifted())
		}
		total, err := reading.Total.Value()
		require.NoError(t, err)
		require.InDelta(t, want, total, 1e-9, "at %d s", second)
		for _, rate := range []Measurement{reading.PublishRate, reading.DeliveryRate, reading.ProcessRate} {
			if second == 0 {
				break
			}
			perSecond, err := rate.Value()
			require.NoError(t, err)
			require.InDelta(t, 100, perSecond, 1e-9, "at %d s", second)
		}
	}
	require.NotZero(t, exact)
	require.LessOrEqual(t, twice, 6, "a quick count is not asked for at each poll to be contradicted")
}

func TestAQuickCountThatDriftsAtZeroIsContradictedOnce(t *testing.T) {
	store, err := NewStore(10*time.Second, time.Minute, Bounds{})
	require.NoError(t, err)
	topic := Topic{Name: "persistent://public/default/a"}
	store.Track("me", NewSubscription(Cluster{}, "s", "a"))
	feed := store.Feed(false)
	fetch := func(second int, detail Detail) TopicSample {
		sample := TopicSample{At: midday().Add(time.Duration(second) * time.Second), Detail: detail}
		for i := range 2 {
			one := SubscriptionSample{Name: "s"}
			if second >= 30 && !detail.Has(Precise) {
				one.BacklogEntries = 50
			}
			sample.Partitions = append(sample.Partitions, PartitionSample{
				Index: i, PublishedMessages: 5, Subscriptions: []SubscriptionSample{one},
			})
		}
		if second == 150 {
			sample.Partitions, sample.Incomplete = sample.Partitions[:1], ErrPartial
		}
		return sample
	}
	contradicted := 0
	for second := 0; second < 300; second += 10 {
		detail := feed.NextRequest(topic, midday().Add(time.Duration(second)*time.Second)).Detail
		require.True(t, detail.Has(Precise) || second <= 30, "at %d s", second)
		sample := fetch(second, detail)
		if feed.CheckPlausible(topic, sample, nil) != nil {
			contradicted++
			again := fetch(second, detail|Precise)
			require.NoError(t, feed.CheckSecond(topic, sample, again))
			sample = again
		}
		store.Record(topic, sample)
	}
	require.Equal(t, 1, contradicted)
}

func TestABacklogWithoutAnEarlierOneIsCountedExactly(t *testing.T) {
	store, err := NewStore(10*time.Second, time.Minute, Bounds{})
	require.NoError(t, err)
	topic := Topic{Name: "persistent://public/default/a"}
	store.Track("me", NewSubscription(Cluster{}, "s", "a"))
	requested := func(second int) Detail {
		return store.Feed(false).NextRequest(topic, midday().Add(time.Duration(second)*time.Second)).Detail
	}
	require.True(t, requested(0).Has(Precise), "after a start")
	store.Record(topic, TopicSample{At: midday(), Detail: Full | Precise, Partitions: []PartitionSample{{
		Index: NotPartitioned, PublishedMessages: 5, Subscriptions: []SubscriptionSample{{Name: "s"}},
	}}})
	require.False(t, requested(10).Has(Precise))
	store.Fail(topic, ErrTopicNotFound)
	store.Fail(topic, ErrUnavailable)
	require.True(t, requested(80).Has(Precise), "after the topic was missing")
}

func TestAPauseIsAcceptedAlthoughTheQuickCountDrifts(t *testing.T) {
	topic := Topic{Name: "persistent://public/default/a"}
	for name, test := range map[string]struct {
		exact int64
		next  int
	}{
		"with a backlog":                {600, 70},
		"without a backlog":             {0, 70},
		"at an interval of two minutes": {0, 180},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := NewStore(10*time.Second, time.Minute, Bounds{})
			require.NoError(t, err)
			store.Track("me", NewSubscription(Cluster{}, "s", "a"))
			feed := store.Feed(false)
			at := func(second int) time.Time { return midday().Add(time.Duration(second) * time.Second) }
			answer := func(second int, detail Detail, entries int64) TopicSample {
				published := int64(100 * min(second, 50)) // then producers pause
				return TopicSample{At: at(second), Detail: detail, Partitions: []PartitionSample{{
					Index: NotPartitioned, PublishedMessages: 90_000 + published, Subscriptions: []SubscriptionSample{{
						Name: "s", BacklogEntries: entries, DeliveredMessages: 80_000 + published,
					}},
				}}}
			}
			for second := 0; second <= 50; second += 10 {
				store.Record(topic, answer(second, Consumers|Precise, test.exact))
			}
			quick := answer(60, Consumers, test.exact+4400)
			require.ErrorIs(t, feed.CheckPlausible(topic, quick, nil), ErrImplausible)
			refused := feed.CheckSecond(topic, quick, answer(61, Consumers|Precise, test.exact))
			require.ErrorIs(t, refused, ErrImplausible)
			store.Fail(topic, refused)
			require.True(t, feed.NextRequest(topic, at(test.next)).Detail.Has(Precise))
			next := answer(test.next, Consumers|Precise, test.exact)
			require.ErrorIs(t, feed.CheckPlausible(topic, next, nil), ErrImplausible)
			require.NoError(t, feed.CheckSecond(topic, next, answer(test.next+1, Consumers|Precise, test.exact)))
		})
	}
}
