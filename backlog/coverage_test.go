// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func least(t *testing.T, m backlog.Measurement) float64 {
	t.Helper()
	value, err := m.LowerBound()
	require.NoError(t, err)
	return value
}

// lacking is a partitioned answer without some of its partitions.
func lacking(sample backlog.TopicSample, indices ...int) backlog.TopicSample {
	all := len(sample.Partitions)
	for _, index := range indices {
		for i, partition := range sample.Partitions {
			if partition.Index == index {
				sample.Partitions = append(sample.Partitions[:i:i], sample.Partitions[i+1:]...)
				break
			}
		}
	}
	sample.Incomplete = fmt.Errorf("%w: %d of %d partitions", backlog.ErrPartial, len(sample.Partitions), all)
	return sample
}

func TestReadSumsTheTopicsThatAreKnown(t *testing.T) {
	const hundred = 100
	names := make([]string, hundred)
	for i := range names {
		names[i] = fmt.Sprintf("persistent://public/default/in-%02d", i)
	}
	tests := map[string]struct {
		failing map[int]error
		known   int
		ready   float64
		lacks   error
		text    string
	}{
		"all": {known: hundred, ready: 50_000},
		"all but one": {
			failing: map[int]error{7: backlog.ErrForbidden}, known: 99, ready: 49_500, lacks: backlog.ErrForbidden,
			text: "partial answer: 99 of 100 topics are known; missing: persistent://public/default/in-07 " +
				"(permission missing)",
		},
		"at most five are named": {
			failing: map[int]error{
				1: backlog.ErrForbidden, 2: backlog.ErrForbidden, 3: backlog.ErrForbidden, 4: backlog.ErrForbidden,
				5: backlog.ErrForbidden, 6: backlog.ErrForbidden, 8: backlog.ErrUnavailable,
			},
			known: 93, ready: 46_500, lacks: backlog.ErrForbidden, text: "in-05 (permission missing), and 2 more",
		},
		"a missing subscription is named first": {
			failing: map[int]error{
				1: backlog.ErrForbidden, 2: backlog.ErrForbidden, 3: backlog.ErrForbidden, 4: backlog.ErrForbidden,
				5: backlog.ErrForbidden, 6: backlog.ErrSubscriptionNotFound,
			},
			known: 94, ready: 47_000, lacks: backlog.ErrSubscriptionNotFound,
			text: "missing: persistent://public/default/in-06 (subscription not found), ",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			subscription := backlog.NewSubscription(cluster(), function, names...)
			store.Track("me", subscription)
			for i, name := range names {
				if err := test.failing[i]; err != nil {
					store.Fail(topic(name), err)
					continue
				}
				store.Record(topic(name), answer{
					at: 0, published: 500, entries: 500, backlogEntries: 500, delivered: 7, consumers: 2,
				}.sample())
				store.Record(topic(name), answer{
					at: 10, published: 600, entries: 600, backlogEntries: 500, delivered: 107, consumers: 2,
				}.sample())
			}
			r, err := store.Read(subscription, second(10))
			require.NoError(t, err)
			require.Equal(t, hundred, r.Coverage.Topics)
			require.Equal(t, test.known, r.Coverage.Known)
			require.InDelta(t, test.ready, least(t, r.Ready), 0)
			require.InDelta(t, 10*test.known, least(t, r.PublishRate), 1e-6)
			require.InDelta(t, 2, least(t, r.Consumers), 0)
			if test.lacks == nil {
				require.True(t, r.Coverage.Complete())
				require.NoError(t, r.Coverage.Err())
				require.InDelta(t, test.ready, known(t, r.Ready), 0)
				return
			}
			require.False(t, r.Coverage.Complete())
			require.True(t, r.Coverage.Lacks(test.lacks))
			require.False(t, r.Coverage.Lacks(backlog.ErrTopicNotFound))
			require.ErrorContains(t, r.Coverage.Err(), test.text)
			require.LessOrEqual(t, len(r.Coverage.Missing), 5)
			unknown(t, backlog.ErrPartial, r.Ready, r.Total, r.PublishRate, r.LatestPublishRate, r.DeliveryRate,
				r.ProcessRate, r.LeastReady, r.Unacked, r.Undispatched, r.Consumers, r.UnreadMessages)
		})
	}
}

func TestReadFailsWhileNothingIsKnown(t *testing.T) {
	tests := map[string]struct {
		prepare func(*backlog.Store)
		want    error
	}{
		"a named topic waits for its first answer": {
			prepare: func(s *backlog.Store) { s.Record(topic(orders), answer{at: 1}.sample()) }, want: backlog.ErrNoData,
		},
		"all fail": {
			prepare: func(s *backlog.Store) {
				s.Fail(topic(orders), backlog.ErrForbidden)
				s.Fail(topic(returns), backlog.ErrUnavailable)
			},
			want: backlog.ErrForbidden,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			both := backlog.NewSubscription(cluster(), function, orders, returns)
			store.Track("me", both)
			test.prepare(store)
			_, err := store.Read(both, second(2))
			require.ErrorIs(t, err, test.want)
		})
	}
}

func TestReadLeavesOutTopicsThatAreNotPersistent(t *testing.T) {
	const transient = "non-persistent://public/default/events"
	store := newStore(t)
	both := backlog.NewSubscription(cluster(), function, orders, transient)
	alone := backlog.NewSubscription(cluster(), function, transient)
	store.Track("both", both)
	store.Track("alone", alone)
	store.Record(topic(orders), answer{at: 0, published: 5, entries: 5, backlogEntries: 5}.sample())
	store.Fail(topic(transient), backlog.ErrUnsupported)
	r, err := store.Read(both, second(0))
	require.NoError(t, err)
	require.Equal(t, backlog.Coverage{Topics: 1, Known: 1}, r.Coverage)
	require.InDelta(t, 5, known(t, r.Ready), 0)
	require.Equal(t, []string{transient}, both.NonPersistent())
	_, err = store.Read(alone, second(0))
	require.ErrorIs(t, err, backlog.ErrUnsupported)
}

func TestAnAnswerThatLacksPartitionsIsALowerBound(t *testing.T) {
	four := func(at int, published int64) backlog.TopicSample {
		one := part{published: published, delivered: published - 100, backlog: 100, consumers: []string{"a", "b"}}
		return partitioned(at, backlog.Full|backlog.Precise, one, one, one, one)
	}
	store := newStore(t)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	store.Track("me", subscription)
	read := func(at int) backlog.Reading {
		r, err := store.Read(subscription, second(at))
		require.NoError(t, err)
		return r
	}
	store.Record(topic(orders), four(0, 1000))
	store.Record(topic(orders), four(10, 1100))
	require.InDelta(t, 400, known(t, read(10).Ready), 0)
	require.InDelta(t, 40, known(t, read(10).PublishRate), 1e-9)

	store.Record(topic(orders), lacking(four(20, 1200), 2))
	r := read(20)
	require.Equal(t, 0, r.Coverage.Known)
	require.ErrorContains(t, r.Coverage.Err(),
		"0 of 1 topics are known; missing: "+orders+" (partial answer: 3 of 4 partitions")
	require.ErrorIs(t, r.Trouble, backlog.ErrPartial)
	require.InDelta(t, 300, least(t, r.Ready), 0)
	require.InDelta(t, 30, least(t, r.PublishRate), 1e-9)
	require.Equal(t, 4, r.Partitions)
	require.True(t, r.ExactAt.IsZero())
	unknown(t, backlog.ErrPartial, r.Ready, r.PublishRate, r.ProcessRate, r.Consumers)
	partitions, err := store.Partitions(subscription, second(20))
	require.NoError(t, err)
	require.Len(t, partitions, 4)
	unknown(t, backlog.ErrPartial, partitions[2].Ready, partitions[2].PublishRate, partitions[2].ProcessRate)
	require.InDelta(t, 100, known(t, partitions[3].Ready), 0)

	store.Record(topic(orders), four(30, 1300))
	r = read(30)
	require.True(t, r.Coverage.Complete())
	require.InDelta(t, 400, known(t, r.Ready), 0)
	require.InDelta(t, 40, known(t, r.PublishRate), 1e-9, "the messages in the gap count over 20 s")
	require.InDelta(t, 40, known(t, r.ProcessRate), 1e-9)
}

func TestARateOfInstancesIsWholeIfAllThatConsumeAnswer(t *testing.T) {
	store := newStore(t)
	store.Feed(true)
	resize := backlog.Object{Namespace: "shop", Name: "resize"}
	subscription := backlog.NewSubscription(cluster(), function, orders)
	subscription.Workload = resize
	store.Track("me", subscription)
	finished := func(at int, consumers ...string) backlog.Measurement {
		store.Record(topic(orders), partitioned(at, backlog.Full, part{consumers: consumers}))
		store.RecordInstances(resize, backlog.InstancesSample{
			At: second(at), Instances: []backlog.InstanceSample{{ID: "a", Received: int64(at), Processed: int64(at)}}, Silent: 1,
		}, nil)
		r, err := store.Read(subscription, second(at))
		require.NoError(t, err)
		return r.Instances.ProcessRate
	}
	finished(0, "a", "b")
	rate := finished(10, "a", "b")
	require.False(t, rate.Known(), "b may finish messages too")
	require.InDelta(t, 1, least(t, rate), 1e-9)
	require.InDelta(t, 1, known(t, finished(20, "a")), 1e-9)
}

func TestAPartitionThatReturnsBringsNoBurst(t *testing.T) {
	four := func(at int) backlog.TopicSample {
		one := part{published: 1_000_000 + int64(at), delivered: 1_000_000 + int64(at), consumers: []string{"a"}}
		return partitioned(at, backlog.Full, one, one, one, one)
	}
	for name, absent := range map[string][]int{"the last ones": {2, 3}, "one between others": {1}, "the first": {0}} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			subscription := backlog.NewSubscription(cluster(), function, orders)
			store.Track("me", subscription)
			store.Record(topic(orders), lacking(four(0), absent...))
			for at := 10; at <= 40; at += 10 {
				require.NoError(t, store.Feed(false).CheckPlausible(topic(orders), four(at), nil))
				store.Record(topic(orders), four(at))
				r, err := store.Read(subscription, second(at))
				require.NoError(t, err)
				rate, err := r.PublishRate.LowerBound()
				require.True(t, err != nil || rate <= 4, "%f/s at %d s", rate, at)
				if at > 10 {
					require.InDelta(t, 4, known(t, r.PublishRate), 1e-9)
					require.InDelta(t, 4, known(t, r.ProcessRate), 1e-9)
				}
			}
		})
	}
}

func TestAnIncompleteAnswerMayLackOtherPartitionsThanTheFirst(t *testing.T) {
	for name, absent := range map[string][]int{
		"another one": {3}, "another one, with one of the first still absent": {1, 3}, "one that was there": {0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			subscription := backlog.NewSubscription(cluster(), function, orders)
			store.Track("me", subscription)
			five := func(at int) backlog.TopicSample {
				one := part{published: 1000 + int64(at), delivered: 900 + int64(at), backlog: 100, consumers: []string{"a"}}
				return partitioned(at, backlog.Full, one, one, one, one, one)
			}
			store.Record(topic(orders), lacking(five(0), 1, 2))
			now := lacking(five(10), absent...)
			require.NoError(t, store.Feed(false).CheckPlausible(topic(orders), now, nil))
			store.Record(topic(orders), now)
			r, err := store.Read(subscription, second(10))
			require.NoError(t, err)
			require.InDelta(t, 100*(5-len(absent)), least(t, r.Ready), 0)
		})
	}
}

func TestASubscriptionOnAMissingPartitionGrowsStale(t *testing.T) {
	store := newStore(t)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	store.Track("me", subscription)
	two := func(at int) backlog.TopicSample {
		return partitioned(at, backlog.Full, part{backlog: 5, published: 5}, part{noSubscription: true})
	}
	store.Record(topic(orders), two(0))
	for at := 10; at <= 100; at += 10 {
		store.Record(topic(orders), lacking(two(at), 0))
		r, err := store.Read(subscription, second(at))
		if at > int(staleAfter/time.Second) {
			require.ErrorIs(t, err, backlog.ErrStale)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, second(0), r.At)
		require.InDelta(t, 5, least(t, r.Ready), 0)
	}
}

func TestANewTopicOfAPatternLosesMessagesWithoutConsumers(t *testing.T) {
	const in3 = "persistent://public/default/in-3"
	for name, tt := range map[string]struct {
		left      int // seconds until in-1 has no consumers
		since     int // seconds until in-2 is there, without the subscription
		published int64
		lost      bool
	}{
		"there are none":                                  {0, 0, 3, true},
		"a client with consumers finds it":                {400, 200, 3, false},
		"the consumers left before":                       {200, 250, 3, true},
		"the consumers left before they could have known": {200, 150, 3, true},
		"the consumers did not follow it":                 {200, 50, 3, false},
		"it has no messages":                              {200, 250, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			subscription := matching(t, "in-.*")
			store.Track("me", subscription)
			const end = 300
			for at := 0; at <= end; at += 50 {
				topics := []string{in1, in3}
				if at >= tt.since {
					topics = append(topics, in2)
				}
				backlog.List(store, namespace(), topics, start().Add(time.Duration(at)*time.Second))
				consumers := 0
				if at < tt.left {
					consumers = 1
				}
				store.Record(topic(in1), answer{at: at, published: 10, backlogEntries: 5, consumers: consumers}.sample())
				store.Record(topic(in2), answer{at: at, published: tt.published, noSubscription: true}.sample())
				store.Record(topic(in3), answer{at: at, published: 3, noSubscription: true}.sample()) // not followed
			}
			r, err := store.Read(subscription, start().Add(end*time.Second))
			require.NoError(t, err)
			require.Equal(t, !tt.lost, r.Coverage.Complete())
			require.Equal(t, tt.lost, r.Coverage.Lacks(backlog.ErrSubscriptionNotFound))
			if tt.lost {
				require.ErrorContains(t, r.Coverage.Err(), in2)
			}
		})
	}
}
