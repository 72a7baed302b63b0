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

// busyPartition is a partition after a number of answers, ten seconds apart: 400 messages arrive in each, and 390 are
// finished.
func busyPartition(answers int64) part {
	return part{
		published: 1000 + 400*answers, delivered: 900 + 390*answers, backlog: 100 + 10*answers, unacked: 50,
		consumers: []string{"a"},
	}
}

// afterAnswers is a store with a topic of two busy partitions after six answers.
func afterAnswers(t *testing.T) *backlog.Store {
	t.Helper()
	store := newStore(t)
	store.Track("me", backlog.NewSubscription(cluster(), function, orders))
	for i := range int64(6) {
		store.Record(topic(orders), partitioned(int(10*i), backlog.Full, busyPartition(i), busyPartition(i)))
	}
	return store
}

func TestCheckPlausible(t *testing.T) {
	with := func(change func(*part)) backlog.TopicSample {
		p := busyPartition(6)
		change(&p)
		return partitioned(60, backlog.Full, busyPartition(6), p)
	}
	tests := map[string]struct {
		sample  backlog.TopicSample
		fetched error
		// reason is a part of the error; empty for a plausible answer.
		reason string
	}{
		"nothing with a steady load":    {sample: with(func(*part) {})},
		"nothing when the load doubles": {sample: with(func(p *part) { p.published += 800; p.backlog += 800 })},
		"nothing after a failed fetch":  {fetched: backlog.ErrUnreachable},
		"a number that cannot be": {
			fetched: fmt.Errorf("%w: msgBacklog is 9223372036854775807", backlog.ErrImplausible),
			reason:  "msgBacklog is 9223372036854775807",
		},
		"a published counter that fell": {with(func(p *part) { p.published = 0 }), nil, "msgInCounter fell from 3000 to 0"},
		"a delivered counter that fell": {
			with(func(p *part) { p.delivered = 7 }), nil, "msgOutCounter of public/default/resize fell from 2850 to 7",
		},
		"a thousand times the published messages": {
			with(func(p *part) { p.published += 1e6 }), nil,
			"msgInCounter grew by 1000800, and recently at most 800 were published in that time",
		},
		"hardly any of the published messages": {
			partitioned(60, backlog.Full, busyPartition(5), busyPartition(5)), nil,
			"msgInCounter grew by 0, and recently at least 800 were published in that time",
		},
		"a backlog that was not published": {
			with(func(p *part) { p.backlog = 1e12 }), nil, "msgBacklog grew by 999999998260 more than msgInCounter explains",
		},
		"a backlog that fell without deliveries": {
			partitioned(60, backlog.Full, part{published: 3400, delivered: 2850, consumers: []string{"a"}},
				part{published: 3400, delivered: 2850, consumers: []string{"a"}}), nil,
			"msgBacklog fell by 600 more than msgOutCounter explains",
		},
		"deliveries of missing messages": {
			with(func(p *part) { p.delivered += 1e6 }), nil,
			"msgOutCounter grew by 998580 more than msgInCounter and msgBacklog explain",
		},
		"fewer partitions": {partitioned(60, backlog.Full, busyPartition(6)), nil, "1 partitions where 2 were known"},
		"a missing subscription": {
			partitioned(60, backlog.Full, part{published: 3400, noSubscription: true},
				part{published: 3400, noSubscription: true}), nil, "subscription public/default/resize is gone",
		},
		"an answer older than the last": {
			partitioned(49, backlog.Full, busyPartition(5), busyPartition(5)), nil,
			"it is of 2026-11-21T12:00:49Z, and 2026-11-21T12:00:50Z was answered before",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			feed := afterAnswers(t).Feed(false)
			err := feed.CheckPlausible(topic(orders), tt.sample, tt.fetched)
			if tt.reason == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, backlog.ErrImplausible)
			require.ErrorContains(t, err, tt.reason)
		})
	}
}

func TestCountersThatStopNeedASecondAnswerOnce(t *testing.T) {
	store := newStore(t)
	store.Track("me", backlog.NewSubscription(cluster(), function, orders))
	few := func(published int64) part {
		return part{published: published, delivered: published, consumers: []string{"a"}}
	}
	answer := func(second int, published int64) backlog.TopicSample {
		return partitioned(second, backlog.Full, few(published), few(published))
	}
	for i := range 6 {
		store.Record(topic(orders), answer(10*i, 4*int64(i)))
	}
	feed := store.Feed(false)

	err := feed.CheckPlausible(topic(orders), answer(60, 20), nil)
	require.ErrorIs(t, err, backlog.ErrImplausible)
	require.ErrorContains(t, err, "msgInCounter grew by 0, and recently at least 8 were published in that time")
	store.Record(topic(orders), answer(60, 20))
	require.NoError(t, feed.CheckPlausible(topic(orders), answer(70, 20), nil), "a pause was accepted")
}

func TestCheckSecond(t *testing.T) {
	good := partitioned(60, backlog.Full, busyPartition(6), busyPartition(6))
	leaps := func(second int, published ...int64) backlog.TopicSample {
		parts := []part{busyPartition(6), busyPartition(6)}
		for i := range parts {
			parts[i].published, parts[i].backlog = parts[i].published+published[i], parts[i].backlog+published[i]
		}
		return partitioned(second, backlog.Full, parts...)
	}
	leap := func(second int, published int64) backlog.TopicSample { return leaps(second, published, published) }
	reloaded := func(second int, published int64) backlog.TopicSample {
		p := part{published: published, delivered: published, backlog: 100, unacked: 50, consumers: []string{"a"}}
		return partitioned(second, backlog.Full, p, p)
	}
	tests := map[string]struct {
		first, second backlog.TopicSample
		accepted      bool
	}{
		"a second answer without a contradiction": {leap(60, 1e6), good, true},
		"one after none":                         {backlog.TopicSample{}, good, true},
		"an equal second answer":                 {leap(60, 1e6), leap(61, 1e6+100), true},
		"topics that were loaded again, in both": {reloaded(60, 30), reloaded(61, 70), true},
		"not two with fewer partitions at first": {
			partitioned(60, backlog.Full, busyPartition(6)), partitioned(61, backlog.Full, busyPartition(6)), false,
		},
		"not a different second answer":                    {leap(60, 1e6), leap(61, 5e6), false},
		"not one with a partition that the first lacks":    {lacking(leap(60, 1e6), 0), leap(61, 5e6), false},
		"not one with the last partition, which it lacks":  {lacking(leap(60, 1e6), 1), leaps(61, 1e6, 5e6), false},
		"not an answer that only contradicts earlier ones": {backlog.TopicSample{}, leap(60, 1e6), false},
		"not one that is as old as the last":               {leap(50, 1e6), leap(50, 1e6), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := afterAnswers(t).Feed(false).CheckSecond(topic(orders), tt.first, tt.second)
			if tt.accepted {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, backlog.ErrImplausible)
		})
	}
}

func TestFewerPartitionsCountOnceTheyStayMissing(t *testing.T) {
	store := afterAnswers(t)
	feed := store.Feed(false)
	check := func(second int) error {
		one := busyPartition(int64(second) / 10)
		first, again := partitioned(second, backlog.Full, one), partitioned(second+1, backlog.Full, one)
		return feed.CheckSecond(topic(orders), first, again)
	}
	require.Error(t, check(60))
	require.Error(t, check(80))
	require.NoError(t, check(90))
	store.Record(topic(orders), partitioned(95, backlog.Full, busyPartition(9), busyPartition(9)))
	require.Error(t, check(100), "they were back meanwhile")
}

func TestAcceptedChangesStayPlausible(t *testing.T) {
	store := afterAnswers(t)
	feed := store.Feed(false)
	expired := func(second int, backlogEntries int64) backlog.TopicSample {
		p := busyPartition(5)
		p.published += int64(40 * (second - 50))
		p.delivered += int64(39 * (second - 50))
		p.backlog = backlogEntries
		return partitioned(second, backlog.Full, p, busyPartition(int64(second)/10))
	}
	store.Record(topic(orders), expired(60, 2000)) // a cursor reset, accepted
	require.NoError(t, feed.CheckPlausible(topic(orders), expired(70, 4000), nil), "more of the same")
	require.Error(t, feed.CheckPlausible(topic(orders), expired(70, 400_000), nil), "much more")
}

func TestAPartitionThatIsBackBringsNoBurst(t *testing.T) {
	store := afterAnswers(t)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	second, count := 50, int64(5)
	for _, partitions := range []int{1, 2, 2, 2} {
		second, count = second+10, count+1
		parts := []part{busyPartition(count), busyPartition(count)}
		store.Record(topic(orders), partitioned(second, backlog.Full, parts[:partitions]...))
		r, err := store.Read(subscription, start().Add(time.Duration(second)*time.Second))
		require.NoError(t, err)
		for _, rate := range []backlog.Measurement{r.PublishRate, r.LatestPublishRate, r.DeliveryRate, r.ProcessRate} {
			if value, err := rate.Value(); err == nil {
				require.LessOrEqual(t, value, 80.0, "with %d partitions at %d s", partitions, second)
			}
		}
		require.False(t, r.Throttled)
	}
	r, err := store.Read(subscription, start().Add(time.Duration(second)*time.Second))
	require.NoError(t, err)
	require.InDelta(t, 80, known(t, r.PublishRate), 1e-9)
	require.InDelta(t, 2, known(t, r.GrowthRate), 1e-9)
}

func TestCountersThatReturnBringNoBurst(t *testing.T) {
	store := afterAnswers(t)
	frozen := busyPartition(5)
	for second := 60; second < 600; second += 10 {
		store.Record(topic(orders), partitioned(second, backlog.Full, frozen, frozen))
	}
	store.Record(topic(orders), partitioned(600, backlog.Full, part{published: 1e6, delivered: 1e6, backlog: 150},
		part{published: 1e6, delivered: 1e6, backlog: 150}))
	r, err := store.Read(backlog.NewSubscription(cluster(), function, orders), start().Add(600*time.Second))
	require.NoError(t, err)
	if rate, err := r.PublishRate.Value(); err == nil {
		require.LessOrEqual(t, rate, 80.0)
	}
}
