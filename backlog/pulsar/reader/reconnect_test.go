// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/poll"
)

// admin is the admin service of topics without a backlog. It has the time of the last request for each.
type admin struct {
	poll.Lister
	mu       sync.Mutex
	requests map[string]time.Time
}

// Fetch implements poll.Source.
func (a *admin) Fetch(_ context.Context, topic backlog.Topic, _ backlog.Request) (backlog.TopicSample, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests[topic.Name] = time.Now()
	return backlog.TopicSample{At: time.Now(), Partitions: []backlog.PartitionSample{{Index: backlog.NotPartitioned}}}, nil
}

func (a *admin) AddEntries(_ context.Context, _ backlog.Topic, sample backlog.TopicSample) backlog.TopicSample {
	return sample
}

func (a *admin) last(topic string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests[topic]
}

// watcher reads all topics at one broker.
type watcher struct{ *Readers }

// Watch implements poll.Watcher.
func (w watcher) Watch(ctx context.Context, partition backlog.Topic, watching func()) (bool, error) {
	return w.Read(ctx, brokerWith("shop"), partition.Name, watching)
}

// pollRarely polls topics of Functions at zero every 5 minutes, with readers.
func pollRarely(t *testing.T, f *fakeBroker, topics []string, body func(a *admin, r *Readers)) {
	t.Helper()
	store, err := backlog.NewStore(time.Minute, time.Hour, backlog.Bounds{})
	require.NoError(t, err)
	subscription := backlog.NewSubscription(backlog.Cluster{AdminURL: "http://pulsar:8080"}, "public/default/f", topics...)
	subscription.Pace = backlog.Waking
	store.Track("shop/f", subscription)
	a, r := &admin{requests: map[string]time.Time{}}, New(f.dial, timeout)
	poller, err := poll.New(poll.Config{
		Store: store, Source: a, Lister: a, Interval: 5 * time.Minute, Timeout: timeout, PerCluster: 16,
		Jitter: func() float64 { return 0.5 }, Updated: func(backlog.Topic) {}, Watcher: watcher{r}, Watches: len(topics),
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error { return poller.Run(ctx) })
	body(a, r)
	stop()
	require.NoError(t, group.Wait())
	r.Close()
}

func TestNoMessageIsMissedByAReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count, third = 90, 3
		topics := make([]string, count)
		for i := range topics {
			topics[i] = fmt.Sprintf("persistent://public/default/t-%02d", i)
		}
		f := newFakeBroker(t)
		pollRarely(t, f, topics, func(a *admin, r *Readers) {
			pass := func(length time.Duration) { time.Sleep(length); synctest.Wait() }
			published := map[string]time.Time{}
			publish := func(which int) {
				for i := which; i < count; i += third {
					published[topics[i]] = time.Now()
					f.publish(topics[i], 10)
				}
			}
			pass(time.Second)
			require.Equal(t, count, r.Subscribed())
			pass(time.Second)

			publish(0) // and the connections end at once
			f.set(func() { f.down = true })
			f.disconnect()
			pass(3 * time.Second)
			require.Zero(t, r.Subscribed())
			publish(1) // no reader sees it
			pass(time.Second)
			f.set(func() { f.down = false })
			pass(10 * time.Second)
			require.Equal(t, count, r.Subscribed())
			publish(2)
			pass(time.Second)
			for _, topic := range topics {
				require.False(t, a.last(topic).Before(published[topic]), "%s is due after its message", topic)
			}
		})
	})
}
