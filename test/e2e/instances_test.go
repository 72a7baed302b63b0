// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/distribution"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// TestSignalsInstances compares the metrics of real instances with functions of known cost. It needs a JDK, and python3
// 3.9 or later with its module venv.
func TestSignalsInstances(t *testing.T) {
	g := onGround(t)
	// They wait more than they work.
	t.Run("synchronous Java", func(t *testing.T) { t.Parallel(); testSynchronousJava(t, g) })
	t.Run("asynchronous Java", func(t *testing.T) { t.Parallel(); testAsynchronousJava(t, g) })
	t.Run("Python", func(t *testing.T) { t.Parallel(); testPython(t, g) })
}

// java is closed after the instances of the test.
func java(t *testing.T, g *ground) func(*journal) (replica.Runner, error) {
	return func(j *journal) (replica.Runner, error) {
		runner, err := replica.NewJava(t.Context(), replica.JavaConfig{Dist: g.Dist(), Progress: os.Stderr, Completed: j.add})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, runner.Close()) })
		return runner, nil
	}
}

func python(t *testing.T) func(*journal) (replica.Runner, error) {
	return func(j *journal) (replica.Runner, error) {
		runner, err := replica.NewPython(t.Context(), os.Stderr, j.add)
		require.NoError(t, err) // the error names what to install
		t.Cleanup(func() { require.NoError(t, runner.Close()) })
		return runner, nil
	}
}

// requireServiceTime compares the mean duration of a call with the reports of synchronous functions: a busy machine
// makes calls longer. Call it at rest, so that both have the same calls, except that Java's metrics include failed
// ones.
func (c *consumers) requireServiceTime(t *testing.T, end totals) {
	t.Helper()
	done, took := c.truth.between(time.Time{}, time.Now())
	truth, measured := took.Seconds()/float64(done), end.busy.Seconds()/float64(end.calls)
	t.Logf("%s: %d calls: service time %.3f ms, in truth %.3f ms of %s", c.in.Name, end.calls, measured*1000, truth*1000,
		c.in.ServiceTime)
	// The first call and failed calls cost some ms outside of the function's clock, on a busy machine more.
	require.InEpsilon(t, truth, measured, 0.25)
}

// requireShare compares the busy share with the functions' reports of the same time: on a busy machine even instances
// with a backlog pause. Calls that fail are in no report, and some samples are older than others.
func (m measured) requireShare(t *testing.T) {
	t.Helper()
	require.InDelta(t, m.share, m.busy, 0.3)
	require.InDelta(t, m.readingShare, known(t, m.reading.Busy), 0.3)
}

// requireBegan requires that each instance reports when its process began. Python reads it of Linux, in hundredths of a
// second since the machine began.
func requireBegan(t *testing.T, sample backlog.InstancesSample, starting time.Time) {
	t.Helper()
	for _, one := range sample.Instances {
		require.WithinRange(t, one.Began, starting.Add(-2*time.Second), sample.At)
	}
}

func known(t *testing.T, m backlog.Measurement) float64 {
	t.Helper()
	value, err := m.Value()
	require.NoError(t, err)
	return value
}

func testSynchronousJava(t *testing.T, g *ground) {
	const service = 0.08
	c := g.newConsumers(t, replica.Instance{
		Name: "instances-java", ServiceTime: 80 * time.Millisecond, RedeliverAfter: 100 * time.Millisecond,
	}, java(t, g))
	starting := time.Now()
	first, second := c.start(t, 0), c.start(t, 1)
	awaitReady(t, first, second)
	idle := c.look(t, 0)
	require.Len(t, idle.Instances, 2)
	requireBegan(t, idle, starting)
	require.Equal(t, totals{}, sum(idle), "everything is there, and 0, before the first message")

	flood := c.flood(t, 160, 2/service) // as much as two instances process in a second, after 160 at first
	full := c.measure(t, 6, 120)
	messages := flood()
	full.requireShare(t)
	require.False(t, full.reading.Asynchronous)

	end := c.rest(t, messages)
	require.Equal(t, messages, c.truth.messages())
	require.Equal(t, end.received, end.calls, "Java counts calls that fail")
	require.Equal(t, end.received, end.processed+end.failed)
	require.InDelta(t, end.calls/failEvery, end.failed, 1)
	c.requireServiceTime(t, end)

	_, stop := c.publish(t, load.Constant(2)) // little beside what two slow instances can do
	light := c.measure(t, end.calls+2, end.calls+12)
	light.requireShare(t)
	require.Less(t, light.busy, full.busy)
	require.Less(t, light.share, full.share)
	stop()
	c.restarts(t, first, second)
}

// restarts kills and replaces the second of two instances, and then kills both.
func (c *consumers) restarts(t *testing.T, first, second replica.Replica) {
	t.Helper()
	before := c.look(t, 0)
	require.NoError(t, second.Kill())
	left := c.look(t, 1)
	require.Len(t, left.Instances, 1)
	require.Equal(t, before.Instances[0].ID, left.Instances[0].ID)
	c.watch.await("silence", func(r backlog.Reading) bool {
		return is(r.Instances.Answering, 1) && is(r.Instances.Silent, 1) && atLeast(r.Instances.ProcessRate, 0)
	})

	third := c.start(t, 1)
	awaitReady(t, third)
	c.burst(t, 10)
	c.watch.await("rates of both", func(r backlog.Reading) bool {
		return is(r.Instances.Answering, 2) && is(r.Instances.Silent, 0) && atLeast(r.Instances.ProcessRate, 0.1)
	})
	after := c.look(t, 0)
	require.Equal(t, before.Instances[1].ID, after.Instances[1].ID)
	require.Less(t, after.Instances[1].Received, before.Instances[1].Received, "a restart begins at 0")
	for _, l := range c.watch.all() {
		r := l.reading.Instances
		for _, m := range []backlog.Measurement{
			r.ProcessRate, r.UserExceptionRate, r.SystemExceptionRate, r.Busy, r.ServiceTime,
		} {
			value, err := m.Value()
			require.True(t, err != nil || value >= 0, "%v was read", value)
		}
	}

	require.NoError(t, first.Kill())
	require.NoError(t, third.Kill())
	_, err := c.scraper.FetchInstances(t.Context(), backlog.Object{Name: c.in.Name})
	require.ErrorIs(t, err, backlog.ErrUnreachable, "no answer is not an answer of none")
	require.ErrorContains(t, err,
		"none of the 2 instances of //instances-java answers; the first: unreachable: instances-java-0 at 127.0.0.1:")
}

func testAsynchronousJava(t *testing.T, g *ground) {
	const futures, service = 10, 0.3
	c := g.newConsumers(t, replica.Instance{
		Name: "instances-async", ServiceTime: 300 * time.Millisecond, AsyncRequests: futures,
		RedeliverAfter: 100 * time.Millisecond,
	}, java(t, g))
	awaitReady(t, c.start(t, 0))
	flood := c.flood(t, 300, futures/service)
	full := c.measure(t, 20, 220)
	messages := flood()
	// Pulsar 4.0 times only the call with its wait for a free slot, later versions until the future is complete. The time
	// that a busy machine adds between two calls is in no clock.
	whole := g.Version() != distribution.Version
	if whole {
		require.InDelta(t, futures+1, full.busy, 2)
		require.InEpsilon(t, service, known(t, full.reading.ServiceTime), 0.2)
	}
	require.True(t, full.reading.Asynchronous)
	require.Greater(t, full.inFlight, int64(futures)/2)

	end := c.rest(t, messages)
	require.Equal(t, messages, c.truth.messages())
	require.Equal(t, end.received, end.processed+end.failed, "futures that fail count as exceptions")
	require.InDelta(t, end.calls/failEvery, end.failed, 1)

	_, stop := c.publish(t, load.Constant(20))
	light := c.measure(t, end.calls+5, end.calls+85)
	require.Greater(t, light.inFlight, int64(3), "6 on average")
	require.True(t, light.reading.Asynchronous)
	if whole {
		require.InDelta(t, 20*service, light.busy, 2)
	} else {
		// Calls return at once while a slot is free.
		require.Less(t, light.busy, full.busy)
		require.Less(t, known(t, light.reading.Busy), known(t, full.reading.Busy))
	}
	stop()
}

func testPython(t *testing.T, g *ground) {
	const service = 0.08
	c := g.newConsumers(t, replica.Instance{Name: "instances-python", ServiceTime: 80 * time.Millisecond}, python(t))
	starting := time.Now()
	awaitReady(t, c.start(t, 0))
	idle := c.look(t, 0)
	require.Equal(t, totals{}, sum(idle), "everything is there, and 0, before the first message")
	requireBegan(t, idle, starting)

	flood := c.flood(t, 100, 1/service)
	full := c.measure(t, 3, 60)
	messages := flood()
	full.requireShare(t)
	require.False(t, full.reading.Asynchronous)
	require.GreaterOrEqual(t, full.inFlight, int64(3), "one in the call and two read ahead")

	end := c.rest(t, messages-messages/failEvery)
	require.GreaterOrEqual(t, end.received, messages, "failed messages come again after a minute")
	require.Equal(t, totals{
		received: end.received, processed: end.received - end.received/failEvery, failed: end.received / failEvery,
		calls: end.received - end.received/failEvery, busy: end.busy,
	}, end, "calls that fail are not counted")
	c.requireServiceTime(t, end)
	more := failEvery - end.received%failEvery // the next call that fails would be one of few: busy would be unknown
	before := c.truth.messages()
	c.burst(t, more)
	end = c.rest(t, before+more-1)

	_, stop := c.publish(t, load.Constant(1))
	light := c.measure(t, end.calls+1, end.calls+7)
	light.requireShare(t)
	require.Less(t, light.busy, full.busy)
	require.Less(t, light.share, full.share)
	stop()
}
