// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// widePattern has a subscription on a pattern with that many topics, each with two answers.
func widePattern(t testing.TB, topics int) (*backlog.Store, backlog.Subscription, time.Time) {
	t.Helper()
	store, now := newStore(t), time.Unix(1_800_000_000, 0)
	pattern, err := backlog.ParsePattern("persistent://public/default/wide-.*")
	require.NoError(t, err)
	subscription := backlog.NewSubscription(cluster(), function).WithPatterns(pattern)
	store.Track("media/policy", subscription)
	names := make([]string, topics)
	for i := range names {
		names[i] = fmt.Sprint("persistent://public/default/wide-", i)
	}
	backlog.List(store, backlog.Namespace{Cluster: cluster(), Name: "public/default"}, names, now)
	for range 2 {
		now = now.Add(10 * time.Second)
		for _, name := range names {
			store.Record(topic(name), wideSample(now))
		}
	}
	return store, subscription, now
}

func wideSample(now time.Time) backlog.TopicSample {
	entries := int64(10)
	return backlog.TopicSample{At: now, Detail: backlog.Slim, Partitions: []backlog.PartitionSample{{
		Index: backlog.NotPartitioned, PublishedMessages: 10, AddedEntries: &entries,
		Subscriptions: []backlog.SubscriptionSample{{Name: function, Type: backlog.Shared, BacklogEntries: 1}},
	}}}
}

func TestAnswersAreRecordedWhileALargeSubscriptionIsRead(t *testing.T) {
	store, subscription, now := widePattern(t, 20_000)
	var reads atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			r, err := store.Read(subscription, now)
			if err != nil || r.Coverage.Known != 20_000 {
				panic(fmt.Sprint(err, r.Coverage))
			}
			reads.Add(1)
		}
	}()
	records := 0
	for running := true; running; records++ {
		now := now.Add(time.Duration(records+1) * time.Millisecond)
		store.Record(topic(fmt.Sprint("persistent://public/default/wide-", records%20_000)), wideSample(now))
		select {
		case <-done:
			running = false
		default:
		}
	}
	t.Logf("%d answers are recorded during 20 readings", records)
	require.Greater(t, records, 20*10)
}

// Writers wait for yieldAfter/2 of the topics.
func BenchmarkReadOf5000Topics(b *testing.B) {
	store, subscription, now := widePattern(b, 5_000)
	for b.Loop() {
		_, _ = store.Read(subscription, now)
	}
}

func BenchmarkWaitForAReadOf5000Topics(b *testing.B) {
	store, subscription, now := widePattern(b, 5_000)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			_, _ = store.Read(subscription, now)
		}
	}()
	var longest time.Duration
	for b.Loop() {
		began := time.Now()
		store.Fail(topic("another"), nil)
		longest = max(longest, time.Since(began))
		time.Sleep(time.Millisecond)
	}
	stop.Store(true)
	<-done
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest")
}
