// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// ratesWithin is how far a rate may be off: the window has whole messages, and batches of them.
const ratesWithin = 0.05

// feed publishes at a constant rate, and knows what was stored when.
type feed struct {
	stop func() (published int64)

	// mu guards counts.
	mu     sync.Mutex
	counts []published
}

// published is how many messages had been stored at a time.
type published struct {
	at    time.Time
	count int64
}

// feed publishes to the topic until it is stopped, and at the latest until the test ends.
func (g *ground) feed(t *testing.T, topic string, perSecond float64, batching load.Batching) *feed {
	t.Helper()
	p, err := load.New(load.Config{ServiceURL: g.ServiceURL(), Topic: topic, Batching: batching})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	f := &feed{}
	var group errgroup.Group
	group.Go(func() error { return p.Run(ctx, load.Constant(perSecond)) })
	group.Go(func() error {
		f.count(ctx, p)
		return nil
	})
	f.stop = func() int64 {
		cancel()
		require.NoError(t, group.Wait())
		return p.Published()
	}
	t.Cleanup(func() {
		f.stop()
		p.Close()
	})
	return f
}

// count looks at the publisher a hundred times a second.
func (f *feed) count(ctx context.Context, p *load.Publisher) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		f.mu.Lock()
		f.counts = append(f.counts, published{at: time.Now(), count: p.Published()})
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// rate is what was stored in the window of a reading, in messages per second.
func (f *feed) rate(r backlog.Reading) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var before, until int64
	for _, c := range f.counts {
		if !c.at.After(r.At.Add(-r.Window)) {
			before = c.count
		}
		if !c.at.After(r.At) {
			until = c.count
		}
	}
	return float64(until-before) / r.Window.Seconds()
}

// tally are replicas that work on messages one after another, and what they have finished.
type tally struct {
	replicas []replica.Replica

	// mu guards done.
	mu   sync.Mutex
	done []time.Time
}

// replicas starts consumers and returns when all consume.
func (g *ground) replicas(t *testing.T, count int, in replica.Instance) *tally {
	t.Helper()
	work := &tally{}
	light := replica.NewLight(func(c replica.Completion) {
		work.mu.Lock()
		defer work.mu.Unlock()
		work.done = append(work.done, c.Done)
	})
	t.Cleanup(light.Close)
	in.Tenant, in.Namespace, in.ServiceURL = "public", "default", g.ServiceURL()
	if in.Subscription == "" {
		in.Subscription = "s"
	}
	for range count {
		r, err := light.Start(t.Context(), in)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, r.Kill()) })
		work.replicas = append(work.replicas, r)
		in.ID++
	}
	for _, r := range work.replicas {
		select {
		case <-r.Ready():
		case <-r.Done():
			require.FailNow(t, "a replica ended")
		}
	}
	return work
}

// rate is what was finished in the window of a reading, in messages per second.
func (w *tally) rate(r backlog.Reading) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	finished := 0
	for _, at := range w.done {
		if at.After(r.At.Add(-r.Window)) && !at.After(r.At) {
			finished++
		}
	}
	return float64(finished) / r.Window.Seconds()
}

// ratesAreThoseOfTheLoad while less is finished than arrives.
func ratesAreThoseOfTheLoad(batching load.Batching, partitions int) signalsCase {
	const arriving, service, count, queue = 300, 20 * time.Millisecond, 2, 10 // 100 of 300 are finished each second
	return func(t *testing.T, g *ground) {
		topic := g.topic(t, fmt.Sprintf("rates-%d-%d", batching, partitions), partitions)
		w := g.watchTopics(t, topic)
		work := g.replicas(t, count, replica.Instance{Name: "rates", Topics: []string{topic}, ServiceTime: service, ReceiverQueueSize: queue})
		load := g.feed(t, topic, arriving, batching)
		w.await("all queues to be full", func(r backlog.Reading) bool { return atLeast(r.Undispatched, 100) })
		saturated := time.Now()
		r := w.await("a window under load", covered(saturated))
		requireSignal(t, "publish rate", load.rate(r), r.PublishRate, ratesWithin)
		requireSignal(t, "process rate", work.rate(r), r.ProcessRate, 2*ratesWithin)
		// A client asks for more when half of its queue on a partition is empty: that many may be more or less in the window.
		lumps := float64(count*max(1, partitions)*queue/2) / r.Window.Seconds()
		requireSignal(t, "delivery rate", work.rate(r), r.DeliveryRate, ratesWithin+lumps/work.rate(r))
		requireSignal(t, "consumers", count, r.Consumers, 0)
		require.True(t, r.SteadyConsumers)
		least, err := r.LeastUndispatched.Value()
		require.NoError(t, err)
		require.Positive(t, least, "work was waiting all the time")
		load.stop()
		stopped := time.Now()
		r = w.await("a window after the load", covered(stopped))
		requireSignal(t, "publish rate after the load", 0, r.PublishRate, 0)
	}
}
