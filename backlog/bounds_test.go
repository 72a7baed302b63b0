// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// boundedStore allows 10 topics a subscription and 25 a namespace.
func boundedStore(t *testing.T) *backlog.Store {
	t.Helper()
	store, err := backlog.NewStore(rateWindow, staleAfter, backlog.Bounds{Subscription: 10, Namespace: 25})
	require.NoError(t, err)
	return store
}

// topicNames are persistent://public/default/<prefix>-0, -1 and so on.
func topicNames(prefix string, count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprint("persistent://public/default/", prefix, "-", i)
	}
	return names
}

func subscribed(prefix string, count int) backlog.Subscription {
	return backlog.NewSubscription(cluster(), prefix, topicNames(prefix, count)...)
}

// requireTracked checks that the store reads the subscription, or why it does not.
func requireTracked(t *testing.T, store *backlog.Store, subscription backlog.Subscription) {
	t.Helper()
	_, err := store.Read(subscription, start())
	require.ErrorIs(t, err, backlog.ErrNoData)
}

func requireRefused(t *testing.T, store *backlog.Store, subscription backlog.Subscription, text string) {
	t.Helper()
	_, err := store.Read(subscription, start())
	require.ErrorIs(t, err, backlog.ErrTooManyTopics)
	require.ErrorContains(t, err, text)
}

func TestASubscriptionWithTooManyTopicsIsRefused(t *testing.T) {
	store := boundedStore(t)
	store.Track("media/one", subscribed("a", 11))
	requireRefused(t, store, subscribed("a", 11), "subscription a has 11 topics, and the bound of a subscription is 10: "+
		"name fewer, or raise --max-topics-per-subscription (value pulsar.maxTopicsPerSubscription of the chart)")
	require.Empty(t, backlog.TrackedTopics(store), "as a whole")

	store.Track("media/one", subscribed("a", 10))
	requireTracked(t, store, subscribed("a", 10))
	require.Len(t, backlog.TrackedTopics(store), 10)
	store.Untrack("media/one")
	require.Empty(t, backlog.Remains(store))
}

func TestAPatternWithTooManyTopicsIsRefusedUntilItMatchesFewer(t *testing.T) {
	store := boundedStore(t)
	followed := matching(t, "in-.*")
	store.Track("media/one", followed)
	list := func(count, second int) {
		backlog.List(store, namespace(), topicNames("in", count), start().Add(time.Duration(second)*time.Second))
	}
	list(10, 0)
	requireTracked(t, store, followed)
	list(1000, 1)
	requireRefused(t, store, followed, "has more than 10 topics, and the bound of a subscription is 10")
	require.Empty(t, backlog.TrackedTopics(store))
	list(9, 2)
	requireTracked(t, store, followed)
	require.Len(t, backlog.TrackedTopics(store), 9)

	both := matching(t, "in-.*", topicNames("named", 5)...)
	store.Track("media/one", both)
	requireRefused(t, store, both, "has 14 topics, and the bound of a subscription is 10")
	store.Untrack("media/one")
	require.Empty(t, backlog.Remains(store))
}

func TestANamespaceTracksABoundedNumberOfTopics(t *testing.T) {
	store := boundedStore(t)
	store.Track("media/one", subscribed("a", 10))
	store.Track("media/two", subscribed("b", 10))
	store.Track("media/again", subscribed("a", 10))
	requireTracked(t, store, subscribed("a", 10))
	store.Track("media/three", subscribed("c", 6))
	requireRefused(t, store, subscribed("c", 6), "with the 6 of subscription c, all subscriptions of the Kubernetes "+
		"namespace would have 26 topics, and the bound of a namespace is 25: track fewer, or raise "+
		"--max-topics-per-namespace (value pulsar.maxTopicsPerNamespace of the chart)")
	store.Track("other/three", subscribed("c", 6))
	requireTracked(t, store, subscribed("c", 6))
	store.Untrack("other/three")

	store.Track("media/one", subscribed("a", 9))
	store.Track("media/three", subscribed("c", 6))
	requireRefused(t, store, subscribed("c", 6), "26 topics") // media/again has all ten
	store.Track("media/again", subscribed("a", 9))
	store.Track("media/three", subscribed("c", 6))
	requireTracked(t, store, subscribed("c", 6))

	bytes := subscribed("c", 6)
	bytes.Bytes = true
	store.Track("media/three", bytes)
	requireTracked(t, store, bytes)
	store.Track("media/three", subscribed("d", 6))
	requireTracked(t, store, subscribed("d", 6))
	for _, name := range []string{"one", "two", "again", "three"} {
		store.Untrack("media/" + name)
	}
	require.Empty(t, backlog.Remains(store))
}

// TestTheFirstToTrackKeepsItsPlace: a listing that is too long for all of a namespace refuses the last ones.
func TestTheFirstToTrackKeepsItsPlace(t *testing.T) {
	store := boundedStore(t)
	var owners []backlog.Subscription
	for _, name := range []string{"first", "second", "third", "fourth", "fifth"} {
		followed := matching(t, "in-.*")
		followed.Name = name
		owners = append(owners, followed)
		store.Track("media/"+name, followed)
	}
	for second, count := range []int{10, 9} {
		backlog.List(store, namespace(), topicNames("in", count), start().Add(time.Duration(second)*time.Second))
		for i, followed := range owners {
			if i >= 2 {
				requireRefused(t, store, followed, "and the bound of a namespace is 25")
				continue
			}
			requireTracked(t, store, followed)
		}
	}
}

func TestARefusedSubscriptionHasNoInstancesRead(t *testing.T) {
	store := boundedStore(t)
	feed := store.Feed(true)
	wide := subscribed("a", 11)
	wide.Workload = backlog.Object{Kind: "Function", Namespace: "media", Name: "a"}
	store.Track("media/one", wide)
	require.Empty(t, feed.Changes())
}

// Three answers about each topic of a pattern on 70,000, 150,000 and 500,000 topics took 193, 413 and 1,387 MiB.
func TestAHugePatternTakesLittleMemory(t *testing.T) {
	for _, topics := range []int{70_000, 150_000, 500_000} {
		t.Run(fmt.Sprint(topics), func(t *testing.T) {
			store, err := backlog.NewStore(rateWindow, staleAfter, backlog.Bounds{Subscription: 2000, Namespace: 5000})
			require.NoError(t, err)
			feed := store.Feed(false)
			followed := matching(t, "wide-.*")
			store.Track("media/one", followed)
			before := heap()
			listing := feed.NextListing(namespace())
			for i := range topics {
				listing.Add(fmt.Sprint("persistent://public/default/wide-", i))
			}
			listed := heap() - before
			store.RecordListing(listing, start(), nil)
			grown := heap() - before
			t.Logf("%d KiB while it is listed, %d KiB afterwards", listed>>10, grown>>10)
			require.Less(t, max(listed, grown), int64(256<<10))
			requireRefused(t, store, followed, "has more than 2,000 topics, and the bound of a subscription is 2,000")
		})
	}
}

// heap is the memory in use.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
