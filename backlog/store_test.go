// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	orders     = "persistent://public/default/orders"
	returns    = "persistent://public/default/returns"
	function   = "public/default/resize"
	rateWindow = 10 * time.Second
	staleAfter = time.Minute
)

func start() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func newStore(t testing.TB) *backlog.Store {
	t.Helper()
	store, err := backlog.NewStore(rateWindow, staleAfter, backlog.Bounds{})
	require.NoError(t, err)
	return store
}

func cluster() backlog.Cluster { return backlog.Cluster{AdminURL: "http://pulsar:8080"} }

func topic(name string) backlog.Topic { return backlog.Topic{Cluster: cluster(), Name: name} }

// answer builds a full answer of one partition with one consumer.
type answer struct {
	at                                 int // seconds after start
	early                              time.Duration
	published, entries, backlogEntries int64
	delayed, unacked, delivered        int64
	subscriptionType                   backlog.SubscriptionType
	consumers                          int
	connected                          int64 // of all consumers, in seconds
	permits                            int64 // of each consumer
	throttled                          int64
	slim, noSubscription               bool
}

func (a answer) sample() backlog.TopicSample {
	kind := a.subscriptionType
	if kind == "" {
		kind = backlog.Shared
	}
	subscription := backlog.SubscriptionSample{
		Name: function, Type: kind, BacklogEntries: a.backlogEntries, DelayedMessages: a.delayed,
		UnackedMessages: a.unacked, DeliveredMessages: a.delivered, ThrottledEvents: a.throttled,
	}
	partition := backlog.PartitionSample{Index: backlog.NotPartitioned, PublishedMessages: a.published}
	sample := backlog.TopicSample{At: start().Add(time.Duration(a.at)*time.Second - a.early), Detail: backlog.Full}
	if a.slim {
		sample.Detail = backlog.Slim
	} else {
		for i := range a.consumers {
			subscription.Consumers = append(subscription.Consumers,
				backlog.ConsumerSample{
					ID: fmt.Sprintf("%s#%d", function, i), ConnectedSince: time.Unix(a.connected, 0), Permits: a.permits,
				})
		}
		entries := a.entries
		partition.AddedEntries = &entries
	}
	if !a.noSubscription {
		partition.Subscriptions = append(partition.Subscriptions, subscription)
	}
	sample.Partitions = []backlog.PartitionSample{partition}
	return sample
}

// readAfter is the reading of a subscription after these answers about its topic, at the time of the last.
func readAfter(t *testing.T, answers ...backlog.TopicSample) backlog.Reading {
	t.Helper()
	store := newStore(t)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	store.Track("me", subscription)
	for _, one := range answers {
		store.Record(topic(orders), one)
	}
	reading, err := store.Read(subscription, answers[len(answers)-1].At)
	require.NoError(t, err)
	return reading
}

func known(t *testing.T, m backlog.Measurement) float64 {
	t.Helper()
	value, err := m.Value()
	require.NoError(t, err)
	return value
}

func TestReadTurnsAnswersIntoReadings(t *testing.T) {
	tests := map[string]struct {
		answers []answer
		check   func(*testing.T, backlog.Reading)
	}{
		"counts messages, not entries, by the mean published batch": {
			answers: []answer{
				{at: 0, published: 1000, entries: 100, backlogEntries: 10},
				{at: 5, published: 3000, entries: 200, backlogEntries: 30},
				{at: 10, published: 5000, entries: 300, backlogEntries: 30},
			},
			check: func(t *testing.T, r backlog.Reading) { require.InDelta(t, 600, known(t, r.Ready), 1e-9) }, // (2000/100)·30
		},
		"keeps the mean batch over slim answers": {
			answers: []answer{
				{at: 0, published: 100, entries: 10, backlogEntries: 1},
				{at: 5, published: 200, backlogEntries: 7, slim: true},
			},
			check: func(t *testing.T, r backlog.Reading) { require.InDelta(t, 70, known(t, r.Ready), 1e-9) },
		},
		"leaves delayed messages out of ready, which is never negative": {
			answers: []answer{{at: 0, published: 30, entries: 30, backlogEntries: 10, delayed: 12, consumers: 1}},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 0, known(t, r.Ready), 0)
				require.InDelta(t, 10, known(t, r.Total), 0)
				require.InDelta(t, 12, known(t, r.Delayed), 0)
			},
		},
		"measures rates between the ends of the window": {
			answers: []answer{
				{at: 0, published: 0, entries: 0, delivered: 0},
				{at: 10, published: 1000, entries: 1000, backlogEntries: 500, delivered: 600, unacked: 100},
				{at: 20, published: 3000, entries: 3000, backlogEntries: 1500, delivered: 1600, unacked: 100},
			},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 200, known(t, r.PublishRate), 1e-9)
				require.InDelta(t, 100, known(t, r.ProcessRate), 1e-9) // (1600-100) - (600-100) over 10 s
				require.Equal(t, 10*time.Second, r.Window)
			},
		},
		"reads the newest arrival rate too": {
			answers: []answer{
				{at: 0, published: 0}, {at: 4, published: 400}, {at: 8, published: 1600}, {at: 10, published: 2400},
			},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 240, known(t, r.PublishRate), 1e-9)
				require.InDelta(t, 400, known(t, r.LatestPublishRate), 1e-9)
				require.Equal(t, 2*time.Second, r.LatestWindow)
			},
		},
		"uses answers two seconds apart for the newest rate": {
			answers: []answer{
				{at: 4, published: 0}, {at: 8, published: 800}, {at: 9, published: 800}, {at: 10, published: 1400},
			},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 300, known(t, r.LatestPublishRate), 1e-9)
				require.Equal(t, 2*time.Second, r.LatestWindow)
			},
		},
		"takes no burst after an outage for a load step": {
			answers: []answer{
				{at: 0, published: 0},
				{at: 30, published: 1000},
				{at: 31, published: 2000, backlogEntries: 500},
				{at: 32, published: 3200, backlogEntries: 1500},
			},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 100, known(t, r.PublishRate), 1e-9)
				unknown(t, backlog.ErrNoRate, r.LatestPublishRate)
			},
		},
		"keeps the last rate at a counter reset": {
			answers: []answer{{at: 0, published: 1000}, {at: 10, published: 1500}, {at: 20, published: 7}},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 50, known(t, r.PublishRate), 0)
				require.InDelta(t, 50, known(t, r.LatestPublishRate), 0)
			},
		},
		"knows no rate after a second counter reset": {
			answers: []answer{
				{at: 0, published: 1000},
				{at: 10, published: 1500},
				{at: 20, published: 7},
				{at: 30, published: 5},
			},
			check: func(t *testing.T, r backlog.Reading) {
				unknown(t, backlog.ErrNoRate, r.PublishRate, r.LatestPublishRate)
			},
		},
		"has no rate after one answer": {
			answers: []answer{{at: 0, published: 1000, entries: 1000}},
			check: func(t *testing.T, r backlog.Reading) {
				unknown(t, backlog.ErrNoRate, r.PublishRate, r.LatestPublishRate, r.DeliveryRate, r.ProcessRate)
			},
		},
		"has no process rate if deliveries were taken back": {
			answers: []answer{
				{at: 0, published: 100, entries: 100, delivered: 100, unacked: 0},
				{at: 10, published: 100, entries: 100, delivered: 100, unacked: 50},
			},
			check: func(t *testing.T, r backlog.Reading) {
				_, err := r.ProcessRate.Value()
				require.ErrorIs(t, err, backlog.ErrNoRate)
			},
		},
		"does not know unacked messages of a Failover subscription": {
			answers: []answer{{at: 0, published: 10, entries: 10, backlogEntries: 5, subscriptionType: backlog.Failover}},
			check: func(t *testing.T, r backlog.Reading) {
				require.False(t, r.Unacked.Known())
				require.False(t, r.Undispatched.Known())
				require.True(t, r.Ready.Known())
			},
		},
		"remembers the least that waited within the window": {
			answers: []answer{
				{at: 0, published: 100, entries: 100, backlogEntries: 100, unacked: 10},
				{at: 5, published: 100, entries: 100, backlogEntries: 8, unacked: 8},
				{at: 10, published: 100, entries: 100, backlogEntries: 70, unacked: 10},
			},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 8, known(t, r.LeastReady), 0)
				require.InDelta(t, 0, known(t, r.LeastUndispatched), 0)
				require.InDelta(t, 60, known(t, r.Undispatched), 0)
			},
		},
		"reports steady consumers if their number was constant": {
			answers: []answer{
				{at: 0, published: 1, entries: 1, consumers: 3},
				{at: 5, published: 2, entries: 2, consumers: 3},
				{at: 10, published: 3, entries: 3, consumers: 3},
			},
			check: func(t *testing.T, r backlog.Reading) {
				require.InDelta(t, 3, known(t, r.Consumers), 0)
				require.True(t, r.SteadyConsumers)
			},
		},
		"does not call consumers steady after one joined": {
			answers: []answer{
				{at: 0, published: 1, entries: 1, consumers: 3},
				{at: 10, published: 3, entries: 3, consumers: 4},
			},
			check: func(t *testing.T, r backlog.Reading) { require.False(t, r.SteadyConsumers) },
		},
		"does not call consumers steady after one was replaced": {
			answers: []answer{
				{at: 0, published: 1, entries: 1, consumers: 1},
				{at: 10, published: 1, slim: true},
				{at: 20, published: 1, slim: true},
				{at: 30, published: 3, entries: 3, consumers: 1, connected: 24},
			},
			check: func(t *testing.T, r backlog.Reading) { require.False(t, r.SteadyConsumers) },
		},
		"measures over one poll that came some milliseconds early": {
			answers: []answer{
				{at: 0, published: 1000, entries: 1000},
				{at: 10, published: 2000, entries: 2000},
				{at: 20, early: 5 * time.Millisecond, published: 4000, entries: 4000},
			},
			check: func(t *testing.T, r backlog.Reading) {
				require.Equal(t, 9995*time.Millisecond, r.Window)
				require.InDelta(t, 2000/9.995, known(t, r.PublishRate), 1e-9)
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var samples []backlog.TopicSample
			for _, a := range test.answers {
				samples = append(samples, a.sample())
			}
			reading := readAfter(t, samples...)
			require.Equal(t, samples[len(samples)-1].At, reading.At)
			test.check(t, reading)
		})
	}
}

func TestReadExplainsAnUnknownReading(t *testing.T) {
	refused := fmt.Errorf("%w: http://pulsar:8080: connection refused", backlog.ErrUnreachable)
	gone := fmt.Errorf("%w: %s", backlog.ErrTopicNotFound, orders)
	good := answer{at: 0, published: 10, entries: 10, backlogEntries: 10}
	tests := map[string]struct {
		prepare func(*backlog.Store, backlog.Subscription)
		after   time.Duration
		want    error
		text    string
	}{
		"no owner tracks it": {
			prepare: func(*backlog.Store, backlog.Subscription) {}, want: backlog.ErrNotTracked,
		},
		"the first answer is under way": {
			prepare: func(s *backlog.Store, sub backlog.Subscription) { s.Track("me", sub) }, want: backlog.ErrNoData,
		},
		"the first answer failed": {
			prepare: func(s *backlog.Store, sub backlog.Subscription) {
				s.Track("me", sub)
				s.Fail(topic(orders), refused)
			},
			want: backlog.ErrUnreachable, text: "connection refused",
		},
		"the last good answer is too old, with the trouble behind it": {
			prepare: func(s *backlog.Store, sub backlog.Subscription) {
				s.Track("me", sub)
				s.Record(topic(orders), good.sample())
				s.Fail(topic(orders), refused)
			},
			after: staleAfter + time.Second, want: backlog.ErrStale, text: "no good answer since 2026-11-21T12:00:00Z",
		},
		"pulsar reports that the topic does not exist": {
			prepare: func(s *backlog.Store, sub backlog.Subscription) {
				s.Track("me", sub)
				s.Record(topic(orders), good.sample())
				s.Fail(topic(orders), gone)
			},
			want: backlog.ErrTopicNotFound,
		},
		"the topic has no such subscription": {
			prepare: func(s *backlog.Store, sub backlog.Subscription) {
				s.Track("me", sub)
				missing := good
				missing.noSubscription = true
				s.Record(topic(orders), missing.sample())
			},
			want: backlog.ErrSubscriptionNotFound, text: `has no subscription "public/default/resize"`,
		},
		"the first answer that could have it failed": {
			prepare: func(s *backlog.Store, sub backlog.Subscription) {
				s.Track("you", backlog.NewSubscription(cluster(), "another's", orders))
				s.Record(topic(orders), good.sample())
				s.Track("me", sub)
				s.Fail(topic(orders), refused)
			},
			want: backlog.ErrUnreachable, text: "connection refused",
		},
		"interest was not renewed": {
			prepare: func(s *backlog.Store, sub backlog.Subscription) {
				s.TrackUntil("scaler", sub, start().Add(time.Minute))
				s.Record(topic(orders), good.sample())
				s.Expire(start().Add(time.Minute + 1))
			},
			want: backlog.ErrNotTracked,
		},
		"its last owner left": {
			prepare: func(s *backlog.Store, sub backlog.Subscription) {
				s.Track("me", sub)
				s.Track("you", sub)
				s.Record(topic(orders), good.sample())
				s.Untrack("me")
				s.Untrack("you")
			},
			want: backlog.ErrNotTracked,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			subscription := backlog.NewSubscription(cluster(), function, orders)
			test.prepare(store, subscription)
			_, err := store.Read(subscription, start().Add(test.after))
			require.ErrorIs(t, err, test.want)
			require.ErrorContains(t, err, test.text)
		})
	}
}

func TestReadKeepsTheLastAnswerOfAFailingTopicUntilItIsStale(t *testing.T) {
	store := newStore(t)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	store.Track("me", subscription)
	store.Record(topic(orders), answer{at: 0, published: 10, entries: 10, backlogEntries: 7}.sample())
	trouble := errors.New("broken")
	store.Fail(topic(orders), trouble)

	reading, err := store.Read(subscription, start().Add(staleAfter))
	require.NoError(t, err)
	require.Equal(t, trouble, reading.Trouble)
	require.InDelta(t, 7, known(t, reading.Ready), 0)
}

func TestReadSumsTopicsAndTrustsTheOldest(t *testing.T) {
	store := newStore(t)
	both := backlog.NewSubscription(cluster(), function, returns, orders, "orders")
	require.Equal(t, []string{orders, returns}, both.Topics, "topics are completed, sorted and named once")
	store.Track("me", both)
	store.Record(topic(orders), answer{at: 3, published: 5, entries: 5, backlogEntries: 5, consumers: 2}.sample())

	_, err := store.Read(both, start().Add(4*time.Second))
	require.ErrorIs(t, err, backlog.ErrNoData, "a sum without one of its topics would be too small")

	store.Record(topic(returns), answer{at: 1, published: 8, entries: 8, backlogEntries: 8, consumers: 2}.sample())
	reading, err := store.Read(both, start().Add(4*time.Second))
	require.NoError(t, err)
	require.InDelta(t, 13, known(t, reading.Ready), 0)
	require.InDelta(t, 2, known(t, reading.Consumers), 0, "each replica consumes both topics")
	require.Equal(t, start().Add(time.Second), reading.At)
}

func TestRecordIgnoresOldAndUntrackedAnswers(t *testing.T) {
	store := newStore(t)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	store.Record(topic(orders), answer{at: 0, published: 1, entries: 1}.sample())
	store.Track("me", subscription)
	store.Record(topic(orders), answer{at: 5, published: 20, entries: 20, backlogEntries: 20}.sample())
	backlog.Attach(store)
	store.Record(topic(orders), answer{at: 3, published: 10, entries: 10, backlogEntries: 10}.sample())
	reading, err := store.Read(subscription, start().Add(5*time.Second))
	require.NoError(t, err)
	require.InDelta(t, 20, known(t, reading.Ready), 0)
	require.False(t, backlog.CannotWait(store, topic(orders)), "a newer answer is here already")
}

func TestTrackingKeepsTheHistoryOfSharedTopics(t *testing.T) {
	store := newStore(t)
	one := backlog.NewSubscription(cluster(), function, orders)
	store.Track("me", one)
	store.Record(topic(orders), answer{at: 0, published: 1, entries: 1, backlogEntries: 1}.sample())
	store.Track("me", backlog.NewSubscription(cluster(), function, orders, returns))
	_, err := store.Read(one, start())
	require.NoError(t, err)
	store.Track("me", backlog.NewSubscription(cluster(), function, returns))
	_, err = store.Read(one, start())
	require.ErrorIs(t, err, backlog.ErrNotTracked)
}

func TestAnUnreadableFieldIsNeverZero(t *testing.T) {
	var forgotten backlog.Measurement
	_, err := forgotten.Value()
	require.ErrorIs(t, err, backlog.ErrNoData)
	require.False(t, forgotten.Known())
}

func TestNewStoreNamesTheViolatedBound(t *testing.T) {
	_, err := backlog.NewStore(0, time.Minute, backlog.Bounds{})
	require.EqualError(t, err, "rateWindow is 0s, must be from 1s to 10m")
	_, err = backlog.NewStore(time.Minute, time.Second, backlog.Bounds{})
	require.EqualError(t, err, "staleAfter is 1s, must not be shorter than rateWindow (1m0s)")
}

func BenchmarkStoreReadAt10kSubscriptions(b *testing.B) {
	store := newStore(b)
	subscriptions := make([]backlog.Subscription, 10_000)
	for i := range subscriptions {
		name := fmt.Sprintf("%s-%d", orders, i)
		subscriptions[i] = backlog.NewSubscription(cluster(), function, name)
		store.Track(name, subscriptions[i])
		for at := range 6 {
			a := answer{at: 2 * at, published: int64(100 * at), entries: int64(100 * at), backlogEntries: 5, consumers: 3}
			store.Record(topic(name), a.sample())
		}
	}
	now := start().Add(10 * time.Second)
	b.ReportAllocs()
	b.ResetTimer()
	i := 0
	for b.Loop() {
		if _, err := store.Read(subscriptions[i%len(subscriptions)], now); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func TestAnAnswerAboutADeletedTopicStaysUnusedWhileOtherRequestsFail(t *testing.T) {
	store, subscription := newStore(t), backlog.NewSubscription(cluster(), function, orders)
	store.Track("me", subscription)
	one := part{published: 9, backlog: 9}
	store.Record(topic(orders), partitioned(0, backlog.Full, one, one))
	store.Fail(topic(orders), backlog.ErrTopicNotFound)
	store.Fail(topic(orders), backlog.ErrUnreachable)
	_, err := store.Read(subscription, second(20))
	require.ErrorIs(t, err, backlog.ErrUnreachable)

	again := partitioned(30, backlog.Full, part{published: 2, backlog: 2})
	require.NoError(t, store.Feed(false).CheckPlausible(topic(orders), again, nil), "it has fewer partitions")
	store.Record(topic(orders), again)
	r, err := store.Read(subscription, second(30))
	require.NoError(t, err)
	require.InDelta(t, 2, known(t, r.Total), 0)
}
