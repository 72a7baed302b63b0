// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// scheduled is a schedule that follows a store.
type scheduled struct {
	*schedule
	store *backlog.Store
	feed  *backlog.Feed
}

func scheduleOf(t testing.TB, topics int, now time.Time) scheduled {
	t.Helper()
	store, err := backlog.NewStore(10*time.Second, time.Minute, backlog.Bounds{})
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 1))
	s := newSchedule(pace{
		interval: 10 * time.Second, rest: 30 * time.Second, quick: 2 * time.Second, jitter: random.Float64,
		after: func(backlog.JobKind, int) time.Duration { return 10 * time.Second },
	})
	for i := range topics {
		store.TrackUntil(fmt.Sprint(i), subscriptionOf(i), now.Add(100*365*24*time.Hour+time.Duration(i)))
	}
	feed := store.Feed(false)
	s.apply(feed.Changes(), now)
	return scheduled{schedule: s, store: store, feed: feed}
}

func subscriptionOf(i int) backlog.Subscription {
	return backlog.NewSubscription(backlog.Cluster{AdminURL: "http://pulsar:8080"}, "f", fmt.Sprint("topic-", i))
}

// need makes the owner of a topic need it at a pace.
func (s scheduled) need(i int, pace backlog.Pace) {
	subscription := subscriptionOf(i)
	subscription.Pace = pace
	s.store.Track(fmt.Sprint(i), subscription)
}

// turn is one tick of the Poller's loop, with fetches that take no time.
func (s scheduled) turn(now time.Time) (fetched int) {
	s.update(s.store, s.feed, now)
	for _, j := range s.start(1_000_000, 1) {
		s.finish(j, nil, now)
		fetched++
	}
	return fetched
}

// A tick costs as much as the due topics, a hundredth of all at an interval of 100 ticks, and not as the tracked ones:
// see ns/fetch, which includes the finish of the fetch.
func BenchmarkTick(b *testing.B) {
	for _, topics := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(topics, " topics"), func(b *testing.B) {
			now := time.Unix(0, 0)
			s := scheduleOf(b, topics, now)
			for range 200 {
				now = now.Add(tick)
				s.turn(now)
			}
			b.ReportAllocs()
			b.ResetTimer()
			fetched := 0
			for b.Loop() {
				now = now.Add(tick)
				fetched += s.turn(now)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(fetched), "ns/fetch")
		})
	}
}

// However long fetches take and whenever their lane has a place, topics keep their first times.
func TestTopicsAreFetchedAnIntervalApartAndStaySpread(t *testing.T) {
	const topics = 1000
	now := time.Unix(0, 0)
	s := scheduleOf(t, topics, now)
	random := rand.New(rand.NewPCG(2, 1))
	starts, ends := map[backlog.Job][]time.Time{}, map[backlog.Job]time.Time{}
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
	s := scheduleOf(t, 1000, now)
	fetches := 0
	for range 300 {
		now = now.Add(tick)
		fetches += s.turn(now)
	}
	require.InDelta(t, 3000, fetches, 600)
	for i := range 900 {
		s.store.Untrack(fmt.Sprint(i))
	}
	now = now.Add(tick)
	s.turn(now)
	require.Len(t, s.slots, 100)
	require.Len(t, s.timeline, 100)
	now = now.Add(101 * 365 * 24 * time.Hour)
	s.turn(now)
	require.Empty(t, s.slots, "interest that was not renewed is over")
	require.Empty(t, s.timeline)
}

func TestTopicsAtRestAreFetchedEveryHalfMinute(t *testing.T) {
	const topics, moving = 100_000, 10_000
	now := time.Unix(0, 0)
	s := scheduleOf(t, topics, now)
	for i := moving; i < topics; i++ {
		s.need(i, backlog.AtRest)
	}
	last, longest := make(map[backlog.Job]time.Time, topics), map[bool]time.Duration{}
	slow := make(map[backlog.Job]bool, topics)
	for i := range topics {
		subscription := subscriptionOf(i)
		slow[backlog.TopicJob(backlog.Topic{Cluster: subscription.Cluster, Name: subscription.Topics[0]})] = i >= moving
	}
	fetches := 0
	for turn := range 1000 { // 100 s
		now = now.Add(tick)
		s.apply(s.feed.Changes(), now)
		s.enqueue(now)
		started := s.start(1_000_000, 1)
		for _, j := range started {
			if at, fetched := last[j]; fetched {
				longest[slow[j]] = max(longest[slow[j]], now.Sub(at))
			}
			last[j] = now
			s.finish(j, nil, now)
		}
		if turn >= 400 { // all have their moments
			fetches += len(started)
			require.Less(t, len(started), topics/100*2/3, "topics that come to rest together are spread")
		}
	}
	require.LessOrEqual(t, float64(fetches)/topics/6, 0.4, "for each topic in ten seconds")
	require.LessOrEqual(t, longest[false], 10*time.Second+tick)
	require.LessOrEqual(t, longest[true], 30*time.Second+tick)
}

func TestATopicThatWakesIsFetchedAsIfItHadNotBeenAtRest(t *testing.T) {
	now := time.Unix(0, 0)
	s := scheduleOf(t, 1, now)
	s.need(0, backlog.AtRest)
	fetchedAt := func(limit time.Duration) time.Time {
		t.Helper()
		for end := now.Add(limit); now.Before(end); {
			now = now.Add(tick)
			if s.turn(now) > 0 {
				return now
			}
		}
		require.FailNow(t, "no fetch", "within %s", limit)
		return now
	}
	for range 5 {
		fetchedAt(30*time.Second + tick)
	}
	for after := time.Duration(0); after < 30*time.Second; after += 700 * time.Millisecond {
		last := fetchedAt(30*time.Second + tick)
		now = now.Add(after)
		woke := now
		s.need(0, backlog.Usual)
		next := fetchedAt(10*time.Second + tick)
		require.LessOrEqual(t, next.Sub(woke), 10*time.Second+tick)
		require.Zero(t, next.Sub(last)%(10*time.Second), "%s", next.Sub(last))
		require.Equal(t, 10*time.Second, fetchedAt(10*time.Second+tick).Sub(next), "and then as usual")
		s.need(0, backlog.AtRest)
		fetchedAt(10*time.Second + tick)
	}
}

func TestTopicsThatAreNeededQuicklyAreFetchedEveryTwoSeconds(t *testing.T) {
	const topics = 100
	now := time.Unix(0, 0)
	s := scheduleOf(t, topics, now)
	turns := func(count int) (fetched int, most int) {
		for range count {
			now = now.Add(tick)
			one := s.turn(now)
			fetched, most = fetched+one, max(most, one)
		}
		return fetched, most
	}
	turns(200)
	for i := range topics {
		s.need(i, backlog.Quick)
	}
	fetched, _ := turns(20)
	require.InDelta(t, topics, fetched, topics/10, "the first time within two seconds and a tick")
	fetched, _ = turns(100)
	require.Equal(t, 5*topics, fetched)
	for i := range topics {
		s.need(i, backlog.Usual)
	}
	fetched, _ = turns(100)
	require.InDelta(t, 2*topics, fetched, topics/2, "their next fetch is within two seconds, and one within ten")
	fetched, most := turns(100)
	require.Equal(t, topics, fetched)
	require.LessOrEqual(t, most, topics/10, "they are spread again")
}

func TestAFailedTopicAtRestIsFetchedAsSoonAsOthers(t *testing.T) {
	now := time.Unix(0, 0)
	s := scheduleOf(t, 1, now)
	s.need(0, backlog.AtRest)
	for range 3 {
		now = now.Add(30 * time.Second)
		s.turn(now)
	}
	now = now.Add(30 * time.Second)
	s.enqueue(now)
	jobs := s.start(1, 1)
	require.Len(t, jobs, 1)
	s.finish(jobs[0], errors.New("connection refused"), now)
	require.Equal(t, 10*time.Second, s.slots[jobs[0]].due.Sub(now))
	s.need(0, backlog.Usual)
	s.apply(s.feed.Changes(), now)
	require.Equal(t, 10*time.Second, s.slots[jobs[0]].due.Sub(now), "its pause stays")
}

func TestAFetchThatWaitsForAPlaceIsLate(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := scheduleOf(t, 2, now)
	s.enqueue(now)
	jobs := s.start(1, 1)
	require.Len(t, jobs, 1)
	require.Zero(t, s.late(jobs[0], now))

	now = now.Add(7 * time.Second)
	s.finish(jobs[0], nil, now)
	jobs = s.start(1, 1)
	require.Len(t, jobs, 1)
	require.Equal(t, 7*time.Second, s.late(jobs[0], now))
}
