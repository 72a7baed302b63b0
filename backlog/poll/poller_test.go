// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/poll"
)

// fakeSource answers from memory on the test's own clock and records what was fetched when.
type fakeSource struct {
	takes time.Duration
	// mu guards the rest.
	mu       sync.Mutex
	fails    map[backlog.Topic]error
	hangs    map[backlog.Cluster]bool
	fetches  map[backlog.Topic][]time.Time
	entries  map[backlog.Topic][]time.Time
	details  []backlog.Detail
	inFlight map[backlog.Cluster]int
	most     map[backlog.Cluster]int
	backlog  int64
}

func newFakeSource() *fakeSource {
	return &fakeSource{
		takes: 20 * time.Millisecond,
		fails: map[backlog.Topic]error{}, hangs: map[backlog.Cluster]bool{}, fetches: map[backlog.Topic][]time.Time{},
		entries:  map[backlog.Topic][]time.Time{},
		inFlight: map[backlog.Cluster]int{}, most: map[backlog.Cluster]int{},
	}
}

func (f *fakeSource) Fetch(ctx context.Context, t backlog.Topic, request backlog.Request) (backlog.TopicSample, error) {
	detail := request.Detail
	at := time.Now()
	f.mu.Lock()
	f.fetches[t] = append(f.fetches[t], at)
	f.details = append(f.details, detail)
	f.inFlight[t.Cluster]++
	f.most[t.Cluster] = max(f.most[t.Cluster], f.inFlight[t.Cluster])
	err, hang, entries := f.fails[t], f.hangs[t.Cluster], f.backlog
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.inFlight[t.Cluster]--
		f.mu.Unlock()
	}()
	takes := f.takes
	if hang {
		takes = time.Hour
	}
	select {
	case <-ctx.Done():
		return backlog.TopicSample{}, fmt.Errorf("%w: timed out", backlog.ErrUnreachable)
	case <-time.After(takes):
	}
	if err != nil {
		return backlog.TopicSample{}, err
	}
	return sampleOf(at, detail, entries), nil
}

func (f *fakeSource) AddEntries(_ context.Context, t backlog.Topic, sample backlog.TopicSample) backlog.TopicSample {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries[t] = append(f.entries[t], time.Now())
	return sample
}

func (f *fakeSource) count(t backlog.Topic) int { return len(f.times(t)) }

// times are those at which the topic was fetched.
func (f *fakeSource) times(t backlog.Topic) []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.fetches[t])
}

// polling runs a poller with a ten second interval and no jitter until the body returns.
func polling(t *testing.T, store *backlog.Store, source poll.Source, body func(*poll.Poller)) {
	t.Helper()
	run(t, poll.Config{
		Store: store, Source: source, Interval: 10 * time.Second, Timeout: 3 * time.Second, PerCluster: 4,
		Jitter: func() float64 { return 0.5 }, Updated: func(backlog.Topic) {}, Lister: newFakeCluster(),
	}, body)
}

// run runs a poller until the body returns.
func run(t *testing.T, config poll.Config, body func(*poll.Poller)) {
	t.Helper()
	poller, err := poll.New(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error { return poller.Run(ctx) })
	body(poller)
	cancel()
	require.NoError(t, group.Wait())
}

func TestPollerFetchesATopicOnceAnIntervalForAllOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source := newStore(t), newFakeSource()
		polling(t, store, source, func(*poll.Poller) {
			for i := range 50 {
				store.Track(fmt.Sprint("policy ", i), backlog.NewSubscription(cluster(), fmt.Sprint("f", i), orders))
			}
			time.Sleep(95 * time.Second)
			synctest.Wait()
			require.InDelta(t, 10, source.count(topic(orders)), 1)
		})
	})
}

func TestTopicsThatFailTogetherAreFetchedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source := newStore(t), newFakeSource()
		names := make([]string, 100)
		for i := range names {
			names[i] = fmt.Sprint("persistent://public/default/in-", i)
			source.fails[topic(names[i])] = backlog.ErrUnreachable
		}
		store.Track("me", backlog.NewSubscription(cluster(), function, names...))
		run(t, poll.Config{
			Store: store, Source: source, Interval: 10 * time.Second, Timeout: 3 * time.Second, PerCluster: len(names),
			Jitter: rand.New(rand.NewPCG(1, 1)).Float64, Updated: func(backlog.Topic) {}, Lister: newFakeCluster(),
		}, func(*poll.Poller) { time.Sleep(15 * time.Second) })
		var counts [2]map[time.Time]int
		for _, name := range names {
			times := source.times(topic(name))
			require.Len(t, times, len(counts))
			for i, at := range times {
				if counts[i] == nil {
					counts[i] = map[time.Time]int{}
				}
				counts[i][at]++
			}
		}
		require.Len(t, counts[0], 1, "at once")
		require.Greater(t, len(counts[1]), 15, "there are 21 ticks from 9 to 11 s")
	})
}

func TestPollerStopsFetchingAnUntrackedTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source := newStore(t), newFakeSource()
		polling(t, store, source, func(*poll.Poller) {
			store.TrackUntil("scaler", backlog.NewSubscription(cluster(), function, orders), time.Now().Add(25*time.Second))
			time.Sleep(time.Minute)
			require.Equal(t, 3, source.count(topic(orders)))
		})
	})
}

func TestPollerBoundsWhatRunsAgainstOneClusterAndSparesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source := newStore(t), newFakeSource()
		hanging := backlog.Cluster{AdminURL: "http://paused:8080"}
		source.hangs[hanging] = true
		polling(t, store, source, func(*poll.Poller) {
			for i := range 40 {
				name := fmt.Sprint("topic-", i)
				store.Track("good"+name, backlog.NewSubscription(cluster(), function, name))
				store.Track("bad"+name, backlog.NewSubscription(hanging, function, name))
			}
			time.Sleep(time.Second)
			for i := range 40 {
				require.Equal(t, 1, source.count(topic(fmt.Sprint("persistent://public/default/topic-", i))),
					"a cluster that hangs must not delay another one")
			}
			time.Sleep(time.Minute)
			source.mu.Lock()
			defer source.mu.Unlock()
			require.LessOrEqual(t, source.most[cluster()], 4)
			require.Equal(t, 4, source.most[hanging])
		})
	})
}

func TestPollerBacksOffAFailingTopicAndNotAMissingOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source := newStore(t), newFakeSource()
		source.fails[topic(orders)] = backlog.ErrUnreachable
		source.fails[topic(returns)] = backlog.ErrTopicNotFound
		polling(t, store, source, func(*poll.Poller) {
			store.Track("me", backlog.NewSubscription(cluster(), function, orders, returns))
			time.Sleep(121 * time.Second)
			require.InDelta(t, 7, source.count(topic(orders)), 1, "10 s, then 20 s apart: 30 s is the bound")
			require.InDelta(t, 13, source.count(topic(returns)), 1)
		})
	})
}

func TestPollerRequestsDetailsOnlyWhileThereIsBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source := newStore(t), newFakeSource()
		polling(t, store, source, func(*poll.Poller) {
			store.Track("me", backlog.NewSubscription(cluster(), function, orders))
			time.Sleep(55 * time.Second)
			source.mu.Lock()
			require.Equal(t, backlog.Full|backlog.Precise, source.details[0])
			require.NotContains(t, source.details[1:], backlog.Consumers, "an idle topic has slim requests")
			source.backlog = 5
			source.mu.Unlock()
			time.Sleep(30 * time.Second)
			source.mu.Lock()
			defer source.mu.Unlock()
			require.True(t, source.details[len(source.details)-1].Has(backlog.Consumers))
		})
	})
}

func TestPollerIsAliveWhileItsLoopTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source := newStore(t), newFakeSource()
		var stopped *poll.Poller
		polling(t, store, source, func(p *poll.Poller) {
			time.Sleep(time.Hour)
			require.NoError(t, p.Alive(time.Now()))
			stopped = p
		})
		require.ErrorContains(t, stopped.Alive(time.Now().Add(11*time.Second)), "poll loop last ran 11s ago")
	})
}

func TestNewPollerNamesTheViolatedBound(t *testing.T) {
	good := poll.Config{
		Store: newStore(t), Source: newFakeSource(), Interval: time.Second, Timeout: time.Second, PerCluster: 1,
		Jitter: func() float64 { return 0 }, Updated: func(backlog.Topic) {}, Lister: newFakeCluster(),
	}
	tests := map[string]struct {
		change func(*poll.Config)
		want   string
	}{
		"no store": {
			func(c *poll.Config) { c.Store = nil },
			"poller: Store, Source, Lister, Jitter and Updated must be set",
		},
		"no lister": {
			func(c *poll.Config) { c.Lister = nil },
			"poller: Store, Source, Lister, Jitter and Updated must be set",
		},
		"interval too big": {
			func(c *poll.Config) { c.Interval = time.Hour },
			"poller: Interval is 1h0m0s, must be from 1s to 5m",
		},
		"no timeout": {
			func(c *poll.Config) { c.Timeout = 0 },
			"poller: Timeout is 0s, must be above 0 and at most 1m",
		},
		"no place": {
			func(c *poll.Config) { c.PerCluster = 0 },
			"poller: PerCluster is 0, must be from 1 to 1000",
		},
		"no place for instances": {
			func(c *poll.Config) { c.Instances = newFakeCluster() }, "poller: Workloads is 0, must be from 1 to 1000",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config := good
			test.change(&config)
			_, err := poll.New(config)
			require.EqualError(t, err, test.want)
		})
	}
}
