// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// ratesWithin is how far a rate may be off: the window has whole messages, and batches of them.
const ratesWithin = 0.05

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
	const arriving, service, count = 300, 20 * time.Millisecond, 2 // 100 of 300 are finished each second
	return func(t *testing.T, g *ground) {
		topic := g.topic(t, fmt.Sprintf("rates-%d-%d", batching, partitions), partitions)
		w := g.watchTopics(t, topic)
		work := g.replicas(t, count, replica.Instance{Name: "rates", Topics: []string{topic}, ServiceTime: service, ReceiverQueueSize: 50})
		stop := g.keepUp(t, topic, arriving, batching)
		w.await("all queues to be full", func(r backlog.Reading) bool { return atLeast(r.Undispatched, 100) })
		saturated := time.Now()
		r := w.await("a window under load", covered(saturated))
		requireSignal(t, "publish rate", arriving, r.PublishRate, ratesWithin)
		requireSignal(t, "process rate", work.rate(r), r.ProcessRate, 2*ratesWithin)
		requireSignal(t, "consumers", count, r.Consumers, 0)
		require.True(t, r.SteadyConsumers)
		least, err := r.LeastUndispatched.Value()
		require.NoError(t, err)
		require.Positive(t, least, "work was waiting all the time")
		stop()
		stopped := time.Now()
		r = w.await("a window after the load", covered(stopped))
		requireSignal(t, "publish rate after the load", 0, r.PublishRate, 0)
	}
}
