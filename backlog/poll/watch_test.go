// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/poll"
)

// places of jobs that watch.
const places = 4

// fakeWatcher watches until the test publishes.
type fakeWatcher struct {
	// mu guards the rest.
	mu       sync.Mutex
	refuses  error
	messages map[string]chan bool
	starts   map[string][]time.Time
}

func newFakeWatcher() *fakeWatcher {
	return &fakeWatcher{messages: map[string]chan bool{}, starts: map[string][]time.Time{}}
}

func (f *fakeWatcher) Watch(ctx context.Context, partition backlog.Topic, watching func()) (message bool, err error) {
	f.mu.Lock()
	f.starts[partition.Name] = append(f.starts[partition.Name], time.Now())
	err = f.refuses
	ends := make(chan bool, 1)
	if err == nil {
		f.messages[partition.Name] = ends
	}
	f.mu.Unlock()
	if err != nil {
		return false, err
	}
	watching()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.messages[partition.Name] == ends {
			delete(f.messages, partition.Name)
		}
	}()
	select {
	case message = <-ends:
	case <-ctx.Done():
	}
	return message, nil
}

// watched are the partitions that are watched.
func (f *fakeWatcher) watched() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.messages))
}

// end ends the watch of a partition, with a message that is due or, as a broker does that lost it, without.
func (f *fakeWatcher) end(partition string, message bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.messages[partition] <- message
	delete(f.messages, partition)
}

func (f *fakeWatcher) refuse(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuses = err
}

func (f *fakeWatcher) started(partition string) []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.starts[partition])
}

// atZero is a subscription of a Function without replicas.
func atZero(pace backlog.Pace, topics ...string) backlog.Subscription {
	s := backlog.NewSubscription(cluster(), function, topics...)
	s.Pace = pace
	return s
}

// watching runs a poller with a watcher in a bubble of synctest.
func watching(t *testing.T, store *backlog.Store, source poll.Source, watcher *fakeWatcher, body func()) {
	t.Helper()
	run(t, watchingConfig(store, source, watcher), func(*poll.Poller) { body() })
}

func watchingConfig(store *backlog.Store, source poll.Source, watcher *fakeWatcher) poll.Config {
	return poll.Config{
		Store: store, Source: source, Lister: newFakeCluster(), Interval: 10 * time.Second, Timeout: 3 * time.Second,
		PerCluster: 16, Jitter: func() float64 { return 0.5 }, Updated: func(backlog.Topic) {}, Watcher: watcher,
		Watches: places,
	}
}

// pass lets the poller do what is due in that time.
func pass(length time.Duration) {
	time.Sleep(length)
	synctest.Wait()
}

func TestAMessageWakesAReplicaAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source, watcher := newStore(t), newFakeSource(), newFakeWatcher()
		subscription := atZero(backlog.Waking, orders)
		store.Track("shop/a", subscription)
		unconfirmed := func() float64 {
			reading, err := store.Read(subscription, time.Now())
			require.NoError(t, err)
			return reading.Unconfirmed
		}
		var news []float64
		config := watchingConfig(store, source, watcher)
		config.Updated = func(backlog.Topic) { news = append(news, unconfirmed()) }
		run(t, config, func(*poll.Poller) {
			pass(time.Second)
			require.Equal(t, []string{orders}, watcher.watched())
			require.Len(t, source.times(topic(orders)), 2,
				"again once messages are seen, so that none is missed in between")
			require.Zero(t, unconfirmed())

			pass(3 * time.Second)
			at := time.Now()
			watcher.end(orders, true)
			pass(time.Second)
			fetched := source.times(topic(orders))
			require.Equal(t, at, fetched[len(fetched)-1], "the answer says how many more")
			require.Equal(t, []float64{0, 0, 1, 0}, news, "after two answers, the message, and its answer")

			pass(8 * time.Second)
			require.Empty(t, watcher.watched(), "a replica wakes")
			pass(2 * time.Second)
			require.Equal(t, []string{orders}, watcher.watched(), "while none does, for the next message")
		})
	})
}

func TestAnswersAfterManyMessagesLeaveTimeForOtherWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source, watcher := newStore(t), newFakeSource(), newFakeWatcher()
		var names []string
		for i := range 150 {
			names = append(names, fmt.Sprintf("persistent://public/default/many-%03d", i))
		}
		store.Track("shop/a", atZero(backlog.Waking, names...))
		config := watchingConfig(store, source, watcher)
		config.Watches = len(names)
		run(t, config, func(*poll.Poller) {
			pass(21 * time.Second) // many first polls are spread
			require.Len(t, watcher.watched(), len(names))
			at := time.Now()
			for _, name := range names {
				watcher.end(name, true)
			}
			pass(2 * time.Second)
			soon := 0
			for _, name := range names {
				fetched := source.times(topic(name))
				last := fetched[len(fetched)-1].Sub(at)
				require.LessOrEqual(t, last, 2*time.Second)
				if last >= 0 && last <= 200*time.Millisecond {
					soon++
				}
			}
			require.InDelta(t, 10, soon, 2, "one in 20 ms")
		})
	})
}

func TestAWatchThatEndsWithoutAMessageMakesItsTopicDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source, watcher := newStore(t), newFakeSource(), newFakeWatcher()
		subscription := atZero(backlog.Waking, orders)
		store.Track("shop/a", subscription)
		watching(t, store, source, watcher, func() {
			pass(4 * time.Second)
			at := time.Now()
			watcher.end(orders, false)
			synctest.Wait()
			fetched := source.times(topic(orders))
			require.Equal(t, at, fetched[len(fetched)-1])
			reading, err := store.Read(subscription, time.Now())
			require.NoError(t, err)
			require.Zero(t, reading.Unconfirmed)

			pass(2 * time.Second)
			require.Equal(t, []string{orders}, watcher.watched())
		})
	})
}

func TestAWatchedTopicIsFetchedLessOften(t *testing.T) {
	tests := map[string]struct {
		refuses error
		backlog int64
		fetches int
	}{
		"every interval":                           {nil, 0, 6},
		"every 2 s where the right is missing":     {backlog.ErrForbidden, 0, 30},
		"every 2 s while messages are not due yet": {nil, 5, 30},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, source, watcher := newStore(t), newFakeSource(), newFakeWatcher()
				source.backlog = test.backlog
				watcher.refuse(test.refuses)
				store.Track("shop/a", atZero(backlog.Quick, orders))
				watching(t, store, source, watcher, func() {
					pass(20 * time.Second)
					before := len(source.times(topic(orders)))
					pass(time.Minute)
					require.Len(t, source.times(topic(orders)), before+test.fetches)
				})
			})
		})
	}
}

func TestAFunctionThatWakesIsNotWatched(t *testing.T) {
	changes := map[string]func(store *backlog.Store){
		"with a replica": func(store *backlog.Store) { store.Track("shop/a", atZero(backlog.Usual, orders)) },
		"deleted":        func(store *backlog.Store) { store.Untrack("shop/a") },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, watcher := newStore(t), newFakeWatcher()
				store.Track("shop/a", atZero(backlog.Quick, orders))
				watching(t, store, newFakeSource(), watcher, func() {
					pass(time.Second)
					require.Equal(t, []string{orders}, watcher.watched())
					change(store)
					pass(time.Second)
					require.Empty(t, watcher.watched())

					store.Track("shop/a", atZero(backlog.Waking, orders))
					pass(3 * time.Second)
					require.Equal(t, []string{orders}, watcher.watched(), "at zero again")
				})
			})
		})
	}
}

func TestRefusedWatchesPauseForLong(t *testing.T) {
	tests := map[string]struct {
		refuses  error
		attempts int
		// told is what the reading says.
		told error
	}{
		"without the right":             {backlog.ErrForbidden, 2, backlog.ErrForbidden},
		"for another host":              {backlog.ErrHostNotAllowed, 2, backlog.ErrHostNotAllowed},
		"of a refused token":            {backlog.ErrUnauthenticated, 2, backlog.ErrUnauthenticated},
		"of a broker without them":      {backlog.ErrUnsupported, 2, backlog.ErrUnsupported},
		"less of a broker that is down": {backlog.ErrUnreachable, 9, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, watcher := newStore(t), newFakeWatcher()
				watcher.refuse(test.refuses)
				subscription := atZero(backlog.Waking, orders)
				store.Track("shop/a", subscription)
				refused := func() error {
					reading, err := store.Read(subscription, time.Now())
					require.NoError(t, err)
					return reading.PushRefused
				}
				watching(t, store, newFakeSource(), watcher, func() {
					pass(9 * time.Minute)
					require.Len(t, watcher.started(orders), test.attempts)
					require.ErrorIs(t, refused(), test.told)
					watcher.refuse(nil)
					pass(10 * time.Minute)
					require.Equal(t, []string{orders}, watcher.watched(), "once it is granted")
					require.NoError(t, refused())
				})
			})
		})
	}
}

func TestPlacesOfWatchesAreSharedByNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, watcher := newStore(t), newFakeWatcher()
		var many []string
		for i := range 20 {
			many = append(many, fmt.Sprintf("persistent://public/default/many-%02d", i))
		}
		store.Track("crowd/a", atZero(backlog.Waking, many...))
		watching(t, store, newFakeSource(), watcher, func() {
			pass(time.Second)
			require.Len(t, watcher.watched(), places)

			store.Track("shop/b", atZero(backlog.Waking, orders))
			pass(10 * time.Minute)
			require.Len(t, watcher.watched(), places)
			require.Contains(t, watcher.watched(), orders, "a place that gets free is for who has the fewest")
		})
	})
}

func TestPartitionsAreWatchedSingly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, watcher := newStore(t), newFakeWatcher()
		source := &partitioned{fakeSource: newFakeSource(), indexes: []int{0, 1}}
		store.Track("shop/a", atZero(backlog.Waking, orders))
		watching(t, store, source, watcher, func() {
			pass(time.Second)
			require.Equal(t, []string{orders + "-partition-0", orders + "-partition-1"}, watcher.watched())

			source.set([]int{0, 2}, backlog.ErrPartial)
			pass(11 * time.Second)
			require.Equal(t, []string{orders + "-partition-0", orders + "-partition-1", orders + "-partition-2"},
				watcher.watched(), "one that did not answer stays")

			source.set([]int{0}, nil)
			pass(time.Minute)
			require.Equal(t, []string{orders + "-partition-0"}, watcher.watched())
		})
	})
}

func TestAPartitionMayBeWatchedBesideItsTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, watcher := newStore(t), newFakeWatcher()
		partition := orders + "-partition-0"
		source := &partitioned{fakeSource: newFakeSource(), indexes: []int{0}, single: partition}
		both := func(pace backlog.Pace) { store.Track("shop/a", atZero(pace, orders, partition)) }
		both(backlog.Waking)
		watching(t, store, source, watcher, func() {
			pass(time.Second)
			require.Equal(t, []string{partition}, watcher.watched())
			watcher.end(partition, true)
			pass(time.Second)
			both(backlog.Usual)
			pass(time.Minute)
			require.Empty(t, watcher.watched())

			both(backlog.Waking)
			pass(11 * time.Second)
			store.Track("shop/a", atZero(backlog.Waking, partition))
			pass(11 * time.Second)
			require.Equal(t, []string{partition}, watcher.watched(), "the topic is gone, and the partition is not")
			store.Untrack("shop/a")
			pass(time.Second)
			require.Empty(t, watcher.watched())
		})
	})
}

// partitioned is a source of a topic with these partitions.
type partitioned struct {
	*fakeSource

	// single is a topic without partitions.
	single string
	// of the answers, guarded by mu of fakeSource.
	indexes    []int
	incomplete error
}

func (p *partitioned) set(indexes []int, incomplete error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.indexes, p.incomplete = indexes, incomplete
}

func (p *partitioned) Fetch(ctx context.Context, t backlog.Topic, request backlog.Request) (
	backlog.TopicSample, error,
) {
	sample, err := p.fakeSource.Fetch(ctx, t, request)
	if t.Name == p.single {
		return sample, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	one := sample.Partitions[0]
	sample.Partitions, sample.Incomplete = nil, p.incomplete
	for _, index := range p.indexes {
		one.Index = index
		sample.Partitions = append(sample.Partitions, one)
	}
	return sample, err
}
