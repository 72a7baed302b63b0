// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A listing of 10 000 topics with a hundred patterns, of which one topic in a thousand changes each time.
func BenchmarkRecordListing(b *testing.B) {
	store, err := NewStore(10*time.Second, time.Minute, Bounds{})
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
		List(store, Namespace{Cluster: cluster, Name: "public/default"}, topics, at)
	}
}

func TestATopicHasThePaceOfTheOwnerThatNeedsItMostOften(t *testing.T) {
	store, err := NewStore(10*time.Second, 40*time.Second, Bounds{})
	require.NoError(t, err)
	feed := store.Feed(true)
	require.Equal(t, 20*time.Second, feed.RestInterval(), "answers that are 40 s old are stale")
	atRest := NewSubscription(Cluster{}, "f", "orders", "returns")
	atRest.Workload, atRest.Pace = Object{Namespace: "shop", Name: "resize"}, AtRest
	active := NewSubscription(Cluster{}, "f", "orders")
	changes := func() map[string]Pace {
		changed := map[string]Pace{}
		for _, c := range feed.Changes() {
			name := c.Job.Name
			if c.Job.Workload != nil {
				name = c.Job.Workload.String()
			}
			changed[name] = c.Pace
		}
		return changed
	}
	const orders, returns = "persistent://public/default/orders", "persistent://public/default/returns"
	store.Track("shop/policy", atRest)
	require.Equal(t, map[string]Pace{orders: AtRest, returns: AtRest, "/shop/resize": Usual}, changes())
	store.Track("shop/hpa", active)
	require.Equal(t, map[string]Pace{orders: Usual}, changes())
	quick := active
	quick.Pace = Quick
	store.Track("shop/zero", quick)
	require.Equal(t, map[string]Pace{orders: Quick}, changes())
	store.Untrack("shop/hpa")
	require.Empty(t, changes(), "one is enough")
	store.Untrack("shop/zero")
	require.Equal(t, map[string]Pace{orders: AtRest}, changes())
	atRest.Pace = Usual
	store.Track("shop/policy", atRest)
	require.Equal(t, map[string]Pace{orders: Usual, returns: Usual}, changes())
	store.Track("shop/hpa", active)
	store.Track("shop/policy", atRest)
	require.Empty(t, changes(), "one is enough")
	atRest.Pace = AtRest
	store.Track("shop/policy", atRest)
	require.Equal(t, map[string]Pace{returns: AtRest}, changes())
	store.Untrack("shop/policy")
	store.Untrack("shop/hpa")
	require.Empty(t, store.topics)
}

func TestInterestThatIsRenewedStays(t *testing.T) {
	store, err := NewStore(10*time.Second, time.Minute, Bounds{})
	require.NoError(t, err)
	now := time.Unix(0, 0)
	subscription := NewSubscription(Cluster{}, "f", "orders")
	for range 10 {
		store.TrackUntil("scaler", subscription, now.Add(5*time.Minute))
		now = now.Add(time.Minute)
		store.Expire(now)
		require.Len(t, store.ends, 1, "once, however often it is renewed")
		require.Len(t, store.owners, 1)
	}
	store.Track("scaler", subscription)
	store.Expire(now.Add(time.Hour))
	require.Len(t, store.owners, 1, "without an end now")
	require.Empty(t, store.ends)
	store.TrackUntil("scaler", subscription, now.Add(time.Hour))
	store.Untrack("scaler")
	store.TrackUntil("scaler", subscription, now.Add(2*time.Hour))
	store.Expire(now.Add(90 * time.Minute))
	require.Len(t, store.owners, 1, "the time of an interest that ended is not that of the next one")
	store.Expire(now.Add(2*time.Hour + 1))
	require.Empty(t, store.owners)
	require.Empty(t, store.ends)
}

func TestInterestThatEndsLeavesNothingBehind(t *testing.T) {
	store, err := NewStore(10*time.Second, time.Minute, Bounds{})
	require.NoError(t, err)
	now := time.Unix(0, 0)
	subscription := NewSubscription(Cluster{}, "f", "orders")
	for range 100 {
		store.TrackUntil("scaler", subscription, now.Add(5*time.Minute))
		now = now.Add(time.Minute)
		store.Expire(now)
		store.Untrack("scaler")
		require.Empty(t, store.ends)
	}
	store.TrackUntil("scaler", subscription, now.Add(time.Hour))
	store.TrackUntil("scaler", subscription, now.Add(time.Minute))
	store.Expire(now.Add(time.Minute - 1))
	require.Len(t, store.owners, 1)
	store.Expire(now.Add(time.Minute))
	require.Empty(t, store.owners, "the last word counts, though it is an earlier end")
	require.Empty(t, store.topics)
}

// A writer that waits gets in at the next yield of the reader.
func TestASubscriptionThatIsUntrackedDuringAReadIsUnknown(t *testing.T) {
	for name, meanwhile := range map[string]func(*Store, Subscription){
		"untracked": func(s *Store, _ Subscription) { s.Untrack("me") },
		"untracked and tracked again": func(s *Store, subscription Subscription) {
			s.Untrack("me")
			s.Track("me", subscription)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := NewStore(10*time.Second, time.Minute, Bounds{})
			require.NoError(t, err)
			now := time.Unix(1_800_000_000, 0)
			pattern, err := ParsePattern("wide-.*")
			require.NoError(t, err)
			subscription := NewSubscription(Cluster{}, "f").WithPatterns(pattern)
			store.Track("me", subscription)
			topics := make([]string, 600)
			for i := range topics {
				topics[i] = fmt.Sprintf("persistent://public/default/wide-%03d", i)
			}
			List(store, Namespace{Name: "public/default"}, topics, now)
			for _, name := range topics {
				store.Record(Topic{Name: name}, TopicSample{At: now.Add(time.Second), Partitions: []PartitionSample{
					{Index: NotPartitioned, Subscriptions: []SubscriptionSample{{Name: "f", BacklogEntries: 1}}},
				}})
			}
			done := make(chan struct{})
			var once sync.Once
			store.mu.RLock()
			found, err := store.inputs(subscription, now.Add(2*time.Second), func(input) {
				once.Do(func() {
					go func() {
						defer close(done)
						meanwhile(store, subscription)
					}()
					for store.mu.TryRLock() { // until the writer waits
						store.mu.RUnlock()
						goruntime.Gosched()
					}
				})
			})
			store.mu.RUnlock()
			<-done
			require.Error(t, err, "%d of %d topics are known", found.coverage.Known, found.coverage.Topics)
		})
	}
}
