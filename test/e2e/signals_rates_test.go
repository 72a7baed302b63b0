// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// ratesWithin is the tolerance of processing rates: acknowledgements take 100 ms. On a busy machine they take longer,
// so that tests wait for a window in which they do not. That every message is counted is tested without a tolerance by
// ratesTimesTheirWindowAreMessages.
const ratesWithin = 0.3

// near reports whether a rate is known and within the tolerance, a share of the truth.
func near(truth float64, got backlog.Measurement, tolerance float64) bool {
	value, err := got.Value()
	return err == nil && math.Abs(value-truth) <= tolerance*truth
}

// feed publishes at a constant rate, and records when messages were stored.
type feed struct {
	stop func() (published int64)

	// mu guards counts.
	mu     sync.Mutex
	counts []published
}

// published has the messages given to the client and those confirmed at a time. The broker's number is between them.
type published struct {
	at              time.Time
	sent, confirmed int64
}

// feed publishes to the topic until it is stopped or the test ends.
func (g *ground) feed(t *testing.T, topic string, perSecond float64) *feed {
	t.Helper()
	return g.feedAs(t, load.Config{Topic: topic}, perSecond)
}

func (g *ground) feedAs(t *testing.T, config load.Config, perSecond float64) *feed {
	t.Helper()
	config.ServiceURL = g.ServiceURL()
	p, err := load.New(config)
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

// count records the publisher's numbers a hundred times a second.
func (f *feed) count(ctx context.Context, p *load.Publisher) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		f.mu.Lock()
		f.counts = append(f.counts, published{at: time.Now(), sent: p.Sent(), confirmed: p.Published()})
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// at bounds the number of messages on the broker at a time: at least those confirmed before, at most those sent at the
// next record.
func (f *feed) at(at time.Time) (least, most int64) {
	for _, c := range f.counts {
		most = c.sent
		if c.at.After(at) {
			break
		}
		least = c.confirmed
	}
	return least, most
}

// requirePublishRate compares with the bounds for the window of the last reading. A response is as of some time between
// the request and its end.
func (f *feed) requirePublishRate(t *testing.T, w *watch, r backlog.Reading) {
	t.Helper()
	f.requirePublishRateOf(t, w, r, r.PublishRate, max(1, r.Partitions))
}

// within bounds the rate of publishing in the window of a reading.
func (f *feed) within(w *watch, r backlog.Reading) (least, most float64) {
	begin, end := r.At.Add(-r.Window), r.At
	beginRead, endRead := begin, end
	for _, l := range w.all() {
		if l.reading.At.Equal(begin) {
			beginRead = l.at
		}
		if l.reading.At.Equal(end) {
			endRead = l.at
			break
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	leastBegin, _ := f.at(begin)
	_, mostBegin := f.at(beginRead)
	leastEnd, _ := f.at(end)
	_, mostEnd := f.at(endRead)
	return float64(leastEnd-mostBegin) / r.Window.Seconds(), float64(mostEnd-leastBegin) / r.Window.Seconds()
}

// requirePublishRateOf compares the rate of some partitions, to which alone the load is published.
func (f *feed) requirePublishRateOf(
	t *testing.T, w *watch, r backlog.Reading, got backlog.Measurement, partitions int,
) {
	t.Helper()
	least, most := f.within(w, r)
	// One more of each: a reloaded partition has its own window, in whole messages.
	most += float64(partitions) / r.Window.Seconds()
	value, err := got.Value()
	require.NoError(t, err)
	t.Logf("SIGNAL %s: publish rate: truth between %.6g and %.6g, read %.6g", t.Name(), least, most, value)
	require.GreaterOrEqual(t, value, least*0.999)
	require.LessOrEqual(t, value, most*1.001)
}

// tally counts the messages that replicas have processed.
type tally struct {
	replicas []replica.Replica

	// mu guards done.
	mu   sync.Mutex
	done []time.Time
}

// replicas starts consumers, and returns when all consume.
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

// rate is the processing rate in the window of a reading, in messages per second.
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

// calls is the number of messages that the replicas received, by their own count.
func (w *tally) calls(t *testing.T) (calls float64) {
	t.Helper()
	for _, r := range w.replicas {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.MetricsURL(), http.NoBody)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(response.Body)
		require.NoError(t, errors.Join(err, response.Body.Close()))
		for _, metric := range families["pulsar_function_received_total"].GetMetric() {
			calls += metric.GetCounter().GetValue()
		}
	}
	return calls
}

// ratesAreThoseOfTheLoad while more arrives than is processed.
func ratesAreThoseOfTheLoad(batched bool, partitions int) signalsCase {
	const arriving, service, count, queue = 300, 20 * time.Millisecond, 2, 10 // 100 of 300 are processed each second
	return func(t *testing.T, g *ground) {
		topic := g.topic(t, fmt.Sprintf("rates-%t-%d", batched, partitions), partitions)
		w := g.watchTopics(t, topic)
		work := g.replicas(t, count,
			replica.Instance{Name: "rates", Topics: []string{topic}, ServiceTime: service, ReceiverQueueSize: queue})
		load := g.feedAs(t, load.Config{Topic: topic, Batched: batched}, arriving)
		w.await("all queues to be full", func(r backlog.Reading) bool { return atLeast(r.Undispatched, 100) })
		saturated := time.Now()
		r := w.await("a window under load", func(r backlog.Reading) bool {
			if !covered(saturated)(r) {
				return false
			}
			// A client requests more when half of its queue on a partition is empty: the window may differ by that many.
			lumps := float64(count*max(1, partitions)*queue/2) / r.Window.Seconds()
			done := work.rate(r)
			return near(done, r.ProcessRate, ratesWithin) && near(done, r.DeliveryRate, ratesWithin+lumps/done) &&
				r.SteadyConsumers
		})
		load.requirePublishRate(t, w, r)
		requireSignal(t, "process rate", work.rate(r), r.ProcessRate, ratesWithin)
		requireSignal(t, "consumers", count, r.Consumers, 0)
		least, err := r.LeastUndispatched.Value()
		require.NoError(t, err)
		require.Positive(t, least, "work was waiting all the time")
		load.stop()
		stopped := time.Now()
		r = w.await("a window after the load", covered(stopped))
		requireSignal(t, "publish rate after the load", 0, r.PublishRate, 0)
	}
}

// ratesTimesTheirWindowAreMessages: over a window that covers the whole load, each rate has counted every message.
func ratesTimesTheirWindowAreMessages(partitions, batch int) signalsCase {
	const messages = 400
	failEvery := 4
	if batch > 1 {
		failEvery = 0 // a batch is redelivered as a whole, and the client drops duplicates
	}
	return func(t *testing.T, g *ground) {
		topic := g.topic(t, fmt.Sprintf("counted-%d-%d", partitions, batch), partitions)
		work := g.replicas(t, 2, replica.Instance{
			Name: "counted", Topics: []string{topic}, ServiceTime: 2 * time.Millisecond, FailEvery: failEvery,
			RedeliverAfter: 500 * time.Millisecond,
		})
		h := g.byHand(t, topic)
		h.read(backlog.Full)
		for _, name := range partitionNames(topic, partitions) {
			g.producer(t, name, batch).send(messages)
		}
		var r backlog.Reading
		eventually(t, "all to be done", func() bool {
			r = h.read(backlog.Full)
			return is(r.Total, 0) && is(r.Unacked, 0) // a broker reads them one after the other
		})
		published := float64(max(1, partitions) * messages)
		window := r.Window.Seconds()
		counted := func(rate backlog.Measurement) backlog.Measurement {
			perSecond, err := rate.Value()
			require.NoError(t, err)
			return backlog.Known(math.Round(perSecond * window))
		}
		requireSignal(t, "messages published, by rate", published, counted(r.PublishRate), 0)
		calls := work.calls(t) // each was a delivery, and has ended
		require.GreaterOrEqual(t, calls, published)
		requireSignal(t, "messages delivered, by rate", calls, counted(r.DeliveryRate), 0)
		requireSignal(t, "messages finished, by rate", calls, counted(r.ProcessRate), 0)
	}
}
