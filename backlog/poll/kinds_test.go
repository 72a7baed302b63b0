// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/poll"
)

// fakeCluster answers requests for listings and instances from memory.
type fakeCluster struct {
	// mu guards the rest.
	mu        sync.Mutex
	topics    []string
	listErr   error
	lists     []time.Time
	scrapeErr error
	hang      bool
	// limited is true if the last fetch of instances had a deadline.
	limited    bool
	scrapes    map[string][]time.Time
	scraping   int
	most       int
	updated    map[string]int
	listedName backlog.Namespace
}

func newFakeCluster(topics ...string) *fakeCluster {
	return &fakeCluster{topics: topics, scrapes: map[string][]time.Time{}, updated: map[string]int{}}
}

func (f *fakeCluster) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// listed, scraped and updates count the calls.
func (f *fakeCluster) listed() (n int) {
	f.set(func() { n = len(f.lists) })
	return n
}

func (f *fakeCluster) scraped(workload string) (n int) {
	f.set(func() { n = len(f.scrapes[workload]) })
	return n
}

func (f *fakeCluster) updates(name string) (n int) {
	f.set(func() { n = f.updated[name] })
	return n
}

func (f *fakeCluster) List(_ context.Context, namespace backlog.Namespace, add func(topic string)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists = append(f.lists, time.Now())
	f.listedName = namespace
	for _, topic := range f.topics {
		add(topic)
	}
	return f.listErr
}

func (f *fakeCluster) FetchInstances(ctx context.Context, of backlog.Workload) (backlog.InstancesSample, error) {
	f.mu.Lock()
	at := time.Now()
	f.scrapes[of.String()] = append(f.scrapes[of.String()], at)
	f.scraping++
	f.most = max(f.most, f.scraping)
	err, hang := f.scrapeErr, f.hang
	_, f.limited = ctx.Deadline()
	f.mu.Unlock()
	defer f.set(func() { f.scraping-- })
	if hang {
		<-ctx.Done()
		return backlog.InstancesSample{}, fmt.Errorf("%w: timed out", backlog.ErrUnreachable)
	}
	return backlog.InstancesSample{At: at, Instances: []backlog.InstanceSample{{ID: "0", Processed: 7}}}, err
}

// config is that of a poller with all sources, an interval of ten seconds and no jitter.
func (f *fakeCluster) config(store *backlog.Store, source poll.Source) poll.Config {
	return poll.Config{
		Store: store, Source: source, Interval: 10 * time.Second, Timeout: 3 * time.Second, PerCluster: 4,
		Jitter:  func() float64 { return 0.5 },
		Updated: func(topic backlog.Topic) { f.set(func() { f.updated[topic.Name]++ }) },
		Lister:  f, Instances: f, Workloads: 2,
	}
}

func TestPollerListsANamespaceAtOnceAndThenEveryHalfMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source, pulsar := newStore(t), newFakeSource(), newFakeCluster(in1, orders)
		source.backlog = 5
		subscription := matching(t, "in-.*")
		store.Track("me", subscription)
		store.Track("you", matching(t, ".*"))
		run(t, pulsar.config(store, source), func(*poll.Poller) {
			time.Sleep(500 * time.Millisecond)
			r, err := store.Read(subscription, time.Now())
			require.NoError(t, err, "a new pattern is read within half a second")
			require.Equal(t, 1, r.Partitions)
			pulsar.set(func() { require.Equal(t, namespace(), pulsar.listedName) })
			require.Positive(t, pulsar.updates("persistent://public/default/in-.*"), "a listing updates its patterns")

			time.Sleep(95 * time.Second)
			require.Equal(t, 4, pulsar.listed(), "one listing serves all patterns of the namespace")
			pulsar.set(func() { pulsar.topics = append(pulsar.topics, in2) })

			time.Sleep(30 * time.Second)
			r, err = store.Read(subscription, time.Now())
			require.NoError(t, err)
			require.Equal(t, 2, r.Partitions, "a new topic is read as soon as it is listed")

			store.Untrack("me")
			store.Untrack("you")
			time.Sleep(time.Second)
			lists, fetches := pulsar.listed(), source.count(topic(in1))
			time.Sleep(time.Minute)
			require.Equal(t, lists, pulsar.listed(), "no owner needs it any more")
			require.Equal(t, fetches, source.count(topic(in1)))
		})
	})
}

func TestPollerListsAgainOnceAMatchedTopicIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source, pulsar := newStore(t), newFakeSource(), newFakeCluster(in1, in2)
		run(t, pulsar.config(store, source), func(*poll.Poller) {
			subscription := matching(t, "in-.*")
			store.Track("me", subscription)
			time.Sleep(5 * time.Second)
			source.mu.Lock()
			source.fails[topic(in2)] = backlog.ErrTopicNotFound
			source.mu.Unlock()
			time.Sleep(10 * time.Second) // fetched and found missing
			require.Equal(t, 2, pulsar.listed(), "the listing is requested at once")
			r, err := store.Read(subscription, time.Now())
			require.NoError(t, err)
			require.Equal(t, 1, r.Partitions)
			time.Sleep(19 * time.Second)
			require.Equal(t, 2, pulsar.listed(), "and once: the next one is at its usual time")
		})
	})
}

func TestPollerTriesAFailedListingSoonerThanAGoodOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source, pulsar := newStore(t), newFakeSource(), newFakeCluster(in1)
		pulsar.listErr = backlog.ErrUnreachable
		run(t, pulsar.config(store, source), func(*poll.Poller) {
			subscription := matching(t, "in-.*")
			store.Track("me", subscription)
			time.Sleep(time.Second)
			_, err := store.Read(subscription, time.Now())
			require.ErrorIs(t, err, backlog.ErrUnreachable)
			pulsar.set(func() { pulsar.listErr = nil })
			time.Sleep(10 * time.Second)
			_, err = store.Read(subscription, time.Now())
			require.NoError(t, err)
		})
	})
}

func TestPollerReportsMissingInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source := newStore(t), newFakeSource()
		polling(t, store, source, func(*poll.Poller) {
			plain := backlog.NewSubscription(cluster(), function, orders)
			plain.Workload = backlog.Object{Namespace: "shop", Name: "resize"}
			store.Track("you", plain)
			time.Sleep(time.Second)
			r, err := store.Read(plain, time.Now())
			require.NoError(t, err)
			_, err = r.Instances.Answering.Value()
			require.ErrorIs(t, err, backlog.ErrNotRequested)
		})
	})
}

func TestPollerReadsInstancesBesideTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source, pulsar := newStore(t), newFakeSource(), newFakeCluster()
		run(t, pulsar.config(store, source), func(*poll.Poller) {
			subscription := backlog.NewSubscription(cluster(), function, orders)
			subscription.Workload = backlog.Object{Namespace: "shop", Name: "resize"}
			store.Track("me", subscription)
			store.Track("you", subscription)
			time.Sleep(95 * time.Second)
			require.InDelta(t, 10, pulsar.scraped("/shop/resize"), 1, "once an interval for all owners")
			require.False(t, pulsar.limited, "a function worker needs longer than an answer about a topic")
			require.InDelta(t, 10, pulsar.updates(orders), 1, "an update for each answer of the topic, none for instances")
			r, err := store.Read(subscription, time.Now())
			require.NoError(t, err)
			require.InDelta(t, 1, known(t, r.Instances.Answering), 0)
			require.InDelta(t, 0, known(t, r.Instances.ProcessRate), 0)

			pulsar.set(func() { pulsar.scrapeErr = fmt.Errorf("%w: no pods", backlog.ErrUnreachable) })
			time.Sleep(2 * staleAfter)
			r, err = store.Read(subscription, time.Now())
			require.NoError(t, err, "instances never make the reading fail")
			_, err = r.Instances.ProcessRate.Value()
			require.ErrorIs(t, err, backlog.ErrStale)
			require.ErrorIs(t, err, backlog.ErrUnreachable)

			store.Untrack("me")
			store.Untrack("you")
			time.Sleep(time.Second)
			before := pulsar.scraped("/shop/resize")
			time.Sleep(time.Minute)
			require.Equal(t, before, pulsar.scraped("/shop/resize"))
		})
	})
}

func TestInstancesThatHangDelayNoTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source, pulsar := newStore(t), newFakeSource(), newFakeCluster()
		pulsar.hang = true
		run(t, pulsar.config(store, source), func(*poll.Poller) {
			for i := range 20 {
				subscription := backlog.NewSubscription(cluster(), function, fmt.Sprint("topic-", i))
				subscription.Workload = backlog.Object{Name: fmt.Sprint(i)}
				store.Track(subscription.Workload.String(), subscription)
			}
			time.Sleep(time.Second)
			for i := range 20 {
				require.Equal(t, 1, source.count(topic(fmt.Sprint("persistent://public/default/topic-", i))))
			}
			pulsar.mu.Lock()
			defer pulsar.mu.Unlock()
			require.Equal(t, 2, pulsar.most)
		})
	})
}

func TestPollerSpreadsAStartOverTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source, pulsar := newStore(t), newFakeSource(), newFakeCluster()
		config := pulsar.config(store, source)
		config.PerCluster = 1000
		numbers := 0
		config.Jitter = func() float64 { numbers++; return float64(numbers%1000) / 1000 }
		for i := range 5000 {
			store.Track(fmt.Sprint(i), backlog.NewSubscription(cluster(), function, fmt.Sprint("topic-", i)))
		}
		begin := time.Now()
		run(t, config, func(*poll.Poller) {
			time.Sleep(11 * time.Second)
			source.mu.Lock()
			perSecond := make([]int, 20)
			for _, fetches := range source.fetches {
				perSecond[fetches[0].Sub(begin)/time.Second]++
			}
			require.Len(t, source.fetches, 5000)
			source.mu.Unlock()
			require.InDelta(t, 100+490, perSecond[0], 100, "a hundred at once, a tenth of the others in the first second")
			require.InDelta(t, 490, slices.Max(perSecond[1:]), 100)

			store.Track("late", backlog.NewSubscription(cluster(), function, orders))
			time.Sleep(200 * time.Millisecond)
			require.Equal(t, 1, source.count(topic(orders)), "a single new one is fetched at once")
		})
	})
}

func TestPollerFetchesATopicAtOnceForANewSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source := newStore(t), newFakeSource()
		polling(t, store, source, func(*poll.Poller) {
			store.Track("me", backlog.NewSubscription(cluster(), "another's", orders))
			time.Sleep(2 * time.Second)
			subscription := backlog.NewSubscription(cluster(), function, orders)
			store.Track("you", subscription)
			time.Sleep(200 * time.Millisecond)
			_, err := store.Read(subscription, time.Now())
			require.NoError(t, err)
		})
	})
}
