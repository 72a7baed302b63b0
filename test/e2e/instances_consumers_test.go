// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// failEvery is the share of calls that fail, for all functions here.
const failEvery = 20

// journal records when each message was processed, as reported by the functions.
type journal struct {
	mu   sync.Mutex // guards done
	done []replica.Completion
}

func (j *journal) add(one replica.Completion) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done = append(j.done, one)
}

// between counts the messages processed after from and until to, and sums up their durations.
func (j *journal) between(from, to time.Time) (n int64, took time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, one := range j.done {
		if one.Done.After(from) && !one.Done.After(to) {
			n++
			took += one.Took
		}
	}
	return n, took
}

// messages counts the messages processed, each once, however often Pulsar delivered it.
func (j *journal) messages() int64 {
	type message struct {
		published time.Time // publishers number their messages from 1
		sequence  uint64
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	all := map[message]struct{}{}
	for _, one := range j.done {
		all[message{one.Published, one.Sequence}] = struct{}{}
	}
	return int64(len(all))
}

// share is the mean share of the time that each of some instances spent in calls.
func (j *journal) share(from, to time.Time, instances int) float64 {
	_, took := j.between(from, to)
	return took.Seconds() / to.Sub(from).Seconds() / float64(instances)
}

// pods are the pods that controllers would read from the API server. The zero value has none.
type pods struct {
	mu         sync.Mutex // guards byWorkload
	byWorkload map[string][]backlog.InstanceAddress
}

func (p *pods) Addresses(workload backlog.Object) ([]backlog.InstanceAddress, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.byWorkload[workload.Name]), nil
}

// set sets the last pod of the workload, or replaces one of the same name.
func (p *pods) set(workload string, pod backlog.InstanceAddress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byWorkload == nil {
		p.byWorkload = map[string][]backlog.InstanceAddress{}
	}
	all := p.byWorkload[workload]
	for i := range all {
		if all[i].ID == pod.ID {
			all[i] = pod
			return
		}
	}
	p.byWorkload[workload] = append(all, pod)
}

// consumers is a function with real instances, and the product's readings of them.
type consumers struct {
	*ground
	in     replica.Instance
	runner replica.Runner
	truth  *journal
	watch  *watch
}

// newConsumers creates the topic of a function, without instances.
func (g *ground) newConsumers(
	t *testing.T, in replica.Instance, runner func(*journal) (replica.Runner, error),
) *consumers {
	t.Helper()
	in.Tenant, in.Namespace, in.Topics, in.ServiceURL = "public", "default", []string{broker.TopicName(
		in.Name)}, g.ServiceURL()
	// Small, so that instances share a burst.
	in.FailEvery, in.ReceiverQueueSize = failEvery, 10
	require.NoError(t, g.CreateTopic(t.Context(), in.Name, 0))
	c := &consumers{ground: g, in: in, truth: &journal{}}
	var err error
	c.runner, err = runner(c.truth)
	require.NoError(t, err)
	subscription := backlog.NewSubscription(g.cluster, in.FQFN(), in.Topics...)
	subscription.Workload = backlog.Object{Name: in.Name}
	c.watch = g.watch(t, subscription)
	return c
}

// start starts an instance, in place of the previous one with the id.
func (c *consumers) start(t *testing.T, id int) replica.Replica {
	t.Helper()
	in := c.in
	in.ID = id
	r, err := c.runner.Start(t.Context(), in)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Kill()) })
	c.pods.set(in.Name, backlog.InstanceAddress{
		ID:      fmt.Sprintf("%s-%d", in.Name, id),
		Address: netip.MustParseAddrPort(strings.TrimSuffix(strings.TrimPrefix(r.MetricsURL(), "http://"), "/metrics")),
	})
	return r
}

// awaitReady waits for instances, and shows the log of an instance that ends early.
func awaitReady(t *testing.T, all ...replica.Replica) {
	t.Helper()
	for _, r := range all {
		select {
		case <-r.Ready():
		case <-r.Done():
			t.Fatal("the instance ended: ", r.(*replica.Process).Err())
		case <-time.After(cluster.WaitLimit):
			t.Fatal("the instance is not ready; it printed: ", r.(*replica.Process).LogTail(20))
		}
	}
}

// publish publishes the load until stop.
func (c *consumers) publish(t *testing.T, shape load.Shape) (p *load.Publisher, stop func()) {
	t.Helper()
	var err error
	p, err = load.New(load.Config{ServiceURL: c.in.ServiceURL, Topic: c.in.Topics[0]})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan error, 1)
	go func() { end <- p.Run(ctx, shape) }()
	return p, func() {
		cancel()
		require.NoError(t, <-end)
		p.Close()
	}
}

// flood publishes n messages within a second and then perSecond until stop, which returns their number: enough for a
// measurement at any speed of the machine.
func (c *consumers) flood(t *testing.T, n, perSecond float64) (stop func() (published int64)) {
	t.Helper()
	p, end := c.publish(t, load.Burst(n-perSecond, perSecond, time.Second))
	return func() int64 {
		end()
		return p.Published()
	}
}

// burst publishes n messages within a second.
func (c *consumers) burst(t *testing.T, n int64) {
	t.Helper()
	p, stop := c.publish(t, load.Burst(float64(n), 0, time.Second))
	eventually(t, "all to be published", func() bool { return p.Published() == n })
	stop()
}

// look reads all instances, until as many are silent as have ended: one that stalls is silent for a moment.
func (c *consumers) look(t *testing.T, silent int) (sample backlog.InstancesSample) {
	t.Helper()
	until(t, func(ctx context.Context) (string, bool) {
		var err error
		sample, err = c.scraper.FetchInstances(ctx, backlog.Object{Name: c.in.Name})
		return fmt.Sprintf("%v, %d silent", err, sample.Silent), err == nil && sample.Silent == silent
	})
	return sample
}

// answered is a sample with the time of its last response; the counters are slightly older.
type answered struct {
	backlog.InstancesSample
	by time.Time
}

// follow reads all instances repeatedly until enough returns true.
func (c *consumers) follow(t *testing.T, enough func(totals) bool) (seen []answered) {
	t.Helper()
	eventually(t, "the instances", func() bool {
		sample, err := c.scraper.FetchInstances(t.Context(), backlog.Object{Name: c.in.Name})
		if err != nil || sample.Silent > 0 {
			return false
		}
		seen = append(seen, answered{InstancesSample: sample, by: time.Now()})
		return enough(sum(sample))
	})
	return seen
}

// rest waits until n messages are processed, none is in flight and each call is reported: what Pulsar delivers again
// is processed again.
func (c *consumers) rest(t *testing.T, n int64) totals {
	t.Helper()
	// Counters of one sample are of slightly different times, so two must be equal.
	var last totals
	c.follow(t, func(now totals) bool {
		before := last
		last = now
		return now == before && now.processed >= n && now.inFlight == 0 && c.truth.messages() >= n
	})
	until(t, func(context.Context) (string, bool) {
		done, _ := c.truth.between(time.Time{}, time.Now())
		return fmt.Sprintf("%d calls are reported, %d counted", done, last.processed), done == last.processed
	})
	return last
}

// totals are the counters of all instances together.
type totals struct {
	received, processed, failed, calls int64
	busy                               time.Duration
	// inFlight is the largest number of messages that one instance holds.
	inFlight int64
}

func sum(sample backlog.InstancesSample) totals {
	var all totals
	for _, one := range sample.Instances {
		all.received += one.Received
		all.processed += one.Processed
		all.failed += one.UserExceptions
		all.calls += *one.Calls
		all.busy += *one.BusyTime
		all.inFlight = max(all.inFlight, one.Received-one.Processed-one.UserExceptions-one.SystemExceptions)
	}
	return all
}

// measured is the difference of two samples.
type measured struct {
	// busy is the mean share of an instance, and share that by the functions' reports; rate is calls per second.
	busy, share, rate float64
	// inFlight is the largest number that one instance held.
	inFlight int64
	// reading is the product's reading over the last seconds, and readingShare the share by the functions' reports.
	reading      backlog.InstancesReading
	readingShare float64
}

// measure samples from one number of calls to another, and compares with the functions' reports, at any speed of the
// machine.
func (c *consumers) measure(t *testing.T, from, to int64) measured {
	t.Helper()
	c.follow(t, func(now totals) bool { return now.calls >= from })
	seen := c.follow(t, func(now totals) bool { return now.calls >= to })
	first, last := seen[0], seen[len(seen)-1]
	before, after := sum(first.InstancesSample), sum(last.InstancesSample)
	seconds, instances := last.At.Sub(first.At).Seconds(), len(last.Instances)
	busy, calls := (after.busy - before.busy).Seconds(), float64(after.calls-before.calls)
	m := measured{busy: busy / seconds / float64(instances), rate: calls / seconds}
	m.share = c.truth.share(first.At, last.At, instances)
	for _, one := range seen {
		m.inFlight = max(m.inFlight, sum(one.InstancesSample).inFlight)
	}
	// The first reading over exactly this period.
	m.reading = c.watch.until("a reading of this time", first.At, func(l look) bool {
		r := l.reading.Instances
		return l.err == nil && r.Window > 0 && !r.At.Add(-r.Window).Before(first.by)
	}).reading.Instances
	m.readingShare = c.truth.share(m.reading.At.Add(-m.reading.Window), m.reading.At, instances)

	// Each processed message was reported before it was counted, but the report may be read later.
	until(t, func(context.Context) (string, bool) {
		done, _ := c.truth.between(time.Time{}, last.by)
		return fmt.Sprintf("%d calls are reported, %d counted", done, after.processed), done >= after.processed
	})
	least, _ := c.truth.between(first.by, last.At)
	most, took := c.truth.between(first.At, last.by)
	t.Logf("%s: %.0f calls in %.2f s: busy %.3f, service time %.2f ms, %.1f calls/s, at most %d in flight; "+
		"the functions say: %d to %d messages of %.2f ms; the reading: busy %s, service time %s s, processed %s/s, "+
		"asynchronous %t",
		c.in.Name, calls, seconds, m.busy, busy/calls*1000, m.rate, m.inFlight, least, most, took.Seconds()/float64(
			most)*1000,
		say(m.reading.Busy), say(m.reading.ServiceTime), say(m.reading.ProcessRate), m.reading.Asynchronous)
	// One message of each instance, or of each future, may be processed and not counted yet.
	slack := int64(instances + c.in.AsyncRequests)
	require.GreaterOrEqual(t, after.processed-before.processed, least-slack)
	require.LessOrEqual(t, after.processed-before.processed, most+slack)
	return m
}
