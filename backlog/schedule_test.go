// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func scheduleOf(t testing.TB, topics int, now time.Time) (*schedule, *Store) {
	t.Helper()
	store, err := NewStore(10*time.Second, time.Minute)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 1))
	s := newSchedule(pace{interval: 10 * time.Second, jitter: random.Float64, after: func(kind, int) time.Duration {
		return 10 * time.Second
	}})
	for i := range topics {
		store.TrackUntil(fmt.Sprint(i),
			NewSubscription(Cluster{AdminURL: "http://pulsar:8080"}, "f", fmt.Sprint("topic-", i)),
			now.Add(100*365*24*time.Hour+time.Duration(i)))
	}
	s.take(store.attach(attached{}), now)
	return s, store
}

// turn is one tick of the Poller's loop, with fetches that take no time.
func turn(s *schedule, store *Store, now time.Time) (fetched int) {
	store.Expire(now)
	s.take(store.changes(), now)
	s.enqueue(now)
	for _, j := range s.start(1_000_000, 1) {
		s.finish(j, nil, now)
		fetched++
	}
	return fetched
}

// A tick costs what is due, a hundredth of the topics at an interval of 100 ticks, and not what is tracked: see
// ns/fetch, which also has the finish of the fetch.
func BenchmarkTick(b *testing.B) {
	for _, topics := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(topics, " topics"), func(b *testing.B) {
			now := time.Unix(0, 0)
			s, store := scheduleOf(b, topics, now)
			for range 200 {
				now = now.Add(tick)
				turn(s, store, now)
			}
			b.ReportAllocs()
			b.ResetTimer()
			fetched := 0
			for b.Loop() {
				now = now.Add(tick)
				fetched += turn(s, store, now)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(fetched), "ns/fetch")
		})
	}
}

// A listing of 10 000 topics with a hundred patterns, of which one topic in a thousand changes each time.
func BenchmarkRecordListing(b *testing.B) {
	store, err := NewStore(10*time.Second, time.Minute)
	require.NoError(b, err)
	cluster := Cluster{AdminURL: "http://pulsar:8080"}
	for i := range 100 {
		pattern, err := ParsePattern(fmt.Sprintf("team-%02d-.*[0-9]", i))
		require.NoError(b, err)
		store.Track(fmt.Sprint(i), NewSubscription(cluster, "f").WithPatterns(pattern))
	}
	topics := make([]string, 10_000)
	at := time.Unix(0, 0)
	b.ResetTimer()
	for b.Loop() {
		at = at.Add(30 * time.Second)
		for i := range topics {
			generation := 0
			if i%1000 == 0 {
				generation = int(at.Unix())
			}
			topics[i] = fmt.Sprintf("persistent://public/default/team-%02d-topic-%05d-%d", i%100, i, generation)
		}
		store.RecordListing(Namespace{Cluster: cluster, Name: "public/default"}, topics, at)
	}
}

func BenchmarkRecordBulk(b *testing.B) {
	now := time.Unix(1000, 0)
	_, store := scheduleOf(b, 100_000, now)
	store.attach(attached{bulk: true})
	bulk := BulkSample{At: now, Topics: map[string]BulkTopic{}}
	for topic := range store.topics {
		store.Record(topic, TopicSample{At: now, Partitions: []PartitionSample{
			{Index: NotPartitioned, Subscriptions: []SubscriptionSample{{Name: "f"}}},
		}})
		bulk.Topics[topic.Name] = BulkTopic{Subscriptions: map[string]BulkSubscription{"f": {Consumers: 1}}}
	}
	b.ResetTimer()
	for b.Loop() {
		bulk.At = bulk.At.Add(10 * time.Second)
		if confirmed := store.RecordBulk(Cluster{AdminURL: "http://pulsar:8080"}, bulk); len(confirmed) != 100_000 {
			b.Fatal(len(confirmed))
		}
	}
}

// However long fetches take and whenever there is a place for them, topics keep the moments that they were given first.
func TestTopicsAreFetchedAnIntervalApartAndStaySpread(t *testing.T) {
	const topics = 1000
	now := time.Unix(0, 0)
	s, _ := scheduleOf(t, topics, now)
	random := rand.New(rand.NewPCG(2, 1))
	starts, ends := map[job][]time.Time{}, map[job]time.Time{}
	for turn := range 1000 {
		now = now.Add(tick)
		for j, end := range ends {
			if !end.After(now) {
				delete(ends, j)
				s.finish(j, nil, now)
			}
		}
		s.enqueue(now)
		started := s.start(1_000_000, 1)
		for _, j := range started {
			starts[j] = append(starts[j], now)
			ends[j] = now.Add(time.Duration(random.Int64N(int64(9 * time.Second))))
		}
		if turn > 200 { // all have their moments
			require.Less(t, len(started), topics/100*5, "a hundredth of them is due at each look")
		}
	}
	for j, at := range starts {
		require.InDelta(t, 10, len(at), 1)
		require.LessOrEqual(t, at[1].Sub(at[0]), 10*time.Second+tick)
		for i := 2; i < len(at); i++ {
			require.InDelta(t, 10*time.Second, at[i].Sub(at[i-1]), float64(tick), "%v", j)
		}
	}
}

func TestEveryTopicIsFetchedOnceAnIntervalHoweverTheyComeAndGo(t *testing.T) {
	now := time.Unix(0, 0)
	s, store := scheduleOf(t, 1000, now)
	fetches := 0
	for range 300 {
		now = now.Add(tick)
		fetches += turn(s, store, now)
	}
	require.InDelta(t, 3000, fetches, 600)
	for i := range 900 {
		store.Untrack(fmt.Sprint(i))
	}
	now = now.Add(tick)
	turn(s, store, now)
	require.Len(t, s.slots, 100)
	require.Len(t, s.timeline, 100)
	now = now.Add(101 * 365 * 24 * time.Hour)
	turn(s, store, now)
	require.Empty(t, s.slots, "interest that was not renewed is over")
	require.Empty(t, s.timeline)
	require.Empty(t, store.expiries)
}

func TestInterestThatIsRenewedStays(t *testing.T) {
	store, err := NewStore(10*time.Second, time.Minute)
	require.NoError(t, err)
	now := time.Unix(0, 0)
	subscription := NewSubscription(Cluster{}, "f", "orders")
	for range 10 {
		store.TrackUntil("asked", subscription, now.Add(5*time.Minute))
		now = now.Add(time.Minute)
		store.Expire(now)
		require.Len(t, store.expiries, 1, "once, however often it is renewed")
		require.Len(t, store.owners, 1)
	}
	store.Track("asked", subscription)
	store.Expire(now.Add(time.Hour))
	require.Len(t, store.owners, 1, "without an end now")
	require.Empty(t, store.expiries)
	store.TrackUntil("asked", subscription, now.Add(time.Hour))
	store.Untrack("asked")
	store.TrackUntil("asked", subscription, now.Add(2*time.Hour))
	store.Expire(now.Add(90 * time.Minute))
	require.Len(t, store.owners, 1, "the time of an interest that ended is not that of the next one")
	store.Expire(now.Add(2*time.Hour + 1))
	require.Empty(t, store.owners)
	require.Empty(t, store.expiries)
}

func TestInterestThatEndsAndBeginsAnewLeavesNothingBehind(t *testing.T) {
	store, err := NewStore(10*time.Second, time.Minute)
	require.NoError(t, err)
	now := time.Unix(0, 0)
	subscription := NewSubscription(Cluster{}, "f", "orders")
	for range 100 {
		store.TrackUntil("asked", subscription, now.Add(5*time.Minute))
		now = now.Add(time.Minute)
		store.Expire(now)
		store.Untrack("asked")
		require.Empty(t, store.expiries)
	}
	store.TrackUntil("asked", subscription, now.Add(time.Hour))
	store.TrackUntil("asked", subscription, now.Add(time.Minute))
	store.Expire(now.Add(time.Minute))
	require.Len(t, store.owners, 1)
	store.Expire(now.Add(time.Minute + 1))
	require.Empty(t, store.owners, "the last word counts, though it is an earlier end")
	require.Empty(t, store.topics)
}
