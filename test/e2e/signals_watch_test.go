// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
)

// look is the product's state of a subscription after one response or failure.
type look struct {
	at      time.Time
	reading backlog.Reading
	err     error
}

// String formats the known values.
func (l look) String() string {
	if l.err != nil {
		return l.err.Error()
	}
	r := l.reading
	text := fmt.Sprintf(
		"type %s, window %s, blocked %t, throttled %t, components %q, partitions %d, trouble %v",
		r.Type, r.Window, r.Blocked, r.Throttled, r.Components, r.Partitions, r.Trouble)
	for _, m := range measurements(r) {
		text += "\n  " + m.name + ": " + say(m.value)
	}
	return text
}

// say formats the number, or why it is unknown.
func say(m backlog.Measurement) string {
	value, err := m.Value()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(value)
}

// named is one signal.
type named struct {
	name  string
	value backlog.Measurement
}

// measurements are the numeric signals of a reading.
func measurements(r backlog.Reading) []named {
	return []named{
		{"total", r.Total},
		{"ready", r.Ready},
		{"delayed", r.Delayed},
		{"unacked", r.Unacked},
		{"undispatched", r.Undispatched},
		{"in replay", r.InReplay},
		{"bytes", r.Bytes},
		{"oldest age", r.OldestAge},
		{"publish rate", r.PublishRate},
		{"delivery rate", r.DeliveryRate},
		{"process rate", r.ProcessRate},
		{"least ready", r.LeastReady},
		{"least undispatched", r.LeastUndispatched},
		{"consumers", r.Consumers},
		{"redelivered", r.Redelivered},
		{"unread partitions", r.UnreadPartitions},
		{"unread messages", r.UnreadMessages},
	}
}

// watch follows a subscription as the product does, and keeps all states.
type watch struct {
	t            *testing.T
	g            *ground
	subscription backlog.Subscription

	// mu guards looks and news, which is closed at the next state.
	mu    sync.Mutex
	looks []look
	news  chan struct{}
}

// watch tracks the subscription until the test ends, and then checks that no number was ever negative.
func (g *ground) watch(t *testing.T, subscription backlog.Subscription) *watch {
	t.Helper()
	w := &watch{t: t, g: g, subscription: subscription, news: make(chan struct{})}
	g.mu.Lock()
	g.watchers[w] = struct{}{}
	g.mu.Unlock()
	owner := fmt.Sprintf("%s %p", t.Name(), w)
	g.store.Track(owner, subscription)
	t.Cleanup(func() {
		g.store.Untrack(owner)
		g.mu.Lock()
		delete(g.watchers, w)
		g.mu.Unlock()
		for _, l := range w.all() {
			for _, m := range measurements(l.reading) {
				if value, err := m.value.Value(); err == nil && value < 0 {
					t.Errorf("%s was read as %v: %s", m.name, value, l)
				}
			}
		}
	})
	return w
}

// watchTopics is watch of the subscription "s" of the topics.
func (g *ground) watchTopics(t *testing.T, topics ...string) *watch {
	t.Helper()
	return g.watch(t, backlog.NewSubscription(g.cluster, "s", topics...))
}

// updated is called by the poller after a change of a topic or a pattern.
func (g *ground) updated(topic backlog.Topic) {
	g.mu.Lock()
	watchers := make([]*watch, 0, len(g.watchers))
	for w := range g.watchers {
		if len(w.subscription.Patterns) > 0 || slices.Contains(w.subscription.Topics, topic.Name) {
			watchers = append(watchers, w)
		}
	}
	g.mu.Unlock()
	for _, w := range watchers {
		now := time.Now()
		reading, err := g.store.Read(w.subscription, now)
		w.add(look{at: now, reading: reading, err: err})
	}
}

func (w *watch) add(l look) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks = append(w.looks, l)
	close(w.news)
	w.news = make(chan struct{})
}

// all returns the states so far.
func (w *watch) all() []look {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.looks)
}

// until waits for the first state that holds and was measured, or failed, after since.
func (w *watch) until(what string, since time.Time, holds func(look) bool) look {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), cluster.WaitLimit)
	defer cancel()
	for next := 0; ; {
		w.mu.Lock()
		looks, news := w.looks, w.news
		w.mu.Unlock()
		for ; next < len(looks); next++ {
			if l := looks[next]; l.at.After(since) && holds(l) {
				return l
			}
		}
		select {
		case <-news:
		case <-ctx.Done():
			last := "nothing"
			if len(looks) > 0 {
				last = looks[len(looks)-1].String()
			}
			require.FailNow(w.t, "waited in vain for "+what, "%d looks, the last said: %s", len(looks), last)
		}
	}
}

// fresh returns the first reading with every part measured from now on. It must be correct.
func (w *watch) fresh() backlog.Reading {
	w.t.Helper()
	now := time.Now()
	return w.until("a new reading", now, func(l look) bool { return l.err == nil && l.reading.At.After(now) }).reading
}

// await is fresh for a condition that needs time.
func (w *watch) await(what string, holds func(backlog.Reading) bool) backlog.Reading {
	w.t.Helper()
	now := time.Now()
	return w.until(what, now,
		func(l look) bool { return l.err == nil && l.reading.At.After(now) && holds(l.reading) }).reading
}

// awaitError waits until the subscription cannot be read for this reason.
func (w *watch) awaitError(reason error) error {
	w.t.Helper()
	return w.until(reason.Error(), time.Now(), func(l look) bool { return l.err != nil && errors.Is(l.err, reason) }).err
}

// rounding is far below a message: entries times their learned size are right up to the last bits of a float64.
const rounding = 1e-6

// is reports whether a measurement is known and has the value.
func is(m backlog.Measurement, want float64) bool {
	value, err := m.Value()
	return err == nil && math.Abs(value-want) <= rounding
}

// atLeast reports whether a measurement is known and not smaller.
func atLeast(m backlog.Measurement, least float64) bool {
	value, err := m.Value()
	return err == nil && value >= least-rounding
}

// requireSignal compares a signal with the truth, and logs the difference. The tolerance is a share of the truth, 0 for
// exact up to rounding.
func requireSignal(t *testing.T, signal string, want float64, got backlog.Measurement, tolerance float64) {
	t.Helper()
	value, err := got.Value()
	require.NoError(t, err, "%s, which is %v in truth", signal, want)
	off := "exact"
	if value != want {
		off = fmt.Sprintf("off by %+.4g (%+.2f %%)", value-want, (value-want)/want*100)
	}
	t.Logf("SIGNAL %s: %s: truth %.6g, read %.6g, %s", t.Name(), signal, want, value, off)
	require.InDelta(t, want, value, max(tolerance*want, rounding), signal)
}
