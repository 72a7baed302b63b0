// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"
)

const patience = cluster.WaitLimit

// sharedBroker is the one broker of this package's tests.
var sharedBroker = shared.New("a real broker", func(ctx context.Context) (*broker.Broker, error) {
	return broker.Start(ctx, broker.Config{Progress: os.Stderr, WithoutWorker: true})
}, (*broker.Broker).Discard)

func TestMain(m *testing.M) { shared.Main(m, sharedBroker) }

// bench publishes to a Function and measures what it publishes.
type bench struct {
	in        replica.Instance
	publisher *load.Publisher
	meter     *load.Meter
	schedule  load.Schedule
	running   sync.WaitGroup
}

// newBench creates topics for a constant load.
func newBench(t *testing.T, name string, length, serviceTime time.Duration, rate float64) *bench {
	t.Helper()
	b := sharedBroker.Need(t)
	input, output := broker.TopicName(name), broker.TopicName(name+"-out")
	require.NoError(t, b.CreateTopic(t.Context(), input, 2))
	require.NoError(t, b.CreateTopic(t.Context(), output, 0))
	client, err := broker.Connect(b.ServiceURL(), "")
	require.NoError(t, err)
	t.Cleanup(client.Close)
	x := &bench{in: replica.Instance{
		Tenant: "public", Namespace: "default", Name: name, Topics: []string{input}, Output: output,
		ServiceURL: b.ServiceURL(), ServiceTime: serviceTime,
	}}
	x.publisher, err = load.NewPublisher(client, load.Publishing{
		Topic: input, Run: name, Messages: load.Messages{Bytes: 100, Batching: load.Batching{MaxMessages: 1}, Publishers: 2},
	})
	require.NoError(t, err)
	t.Cleanup(x.publisher.Close)
	x.meter, err = load.NewMeter(client, load.Metering{Topic: output, Run: name, Objective: time.Second})
	require.NoError(t, err)
	t.Cleanup(x.meter.Close)
	shape := load.Shape{Duration: metav1.Duration{Duration: length}, Constant: &load.Constant{Rate: rate}}
	x.schedule, err = shape.Schedule(nil)
	require.NoError(t, err)
	return x
}

// java starts a real instance of the example Function; it reports each processed message to completed.
func (x *bench) java(t *testing.T, completed func(replica.Completion)) replica.Replica {
	t.Helper()
	runner, err := replica.NewJava(t.Context(), replica.JavaConfig{
		Dist: sharedBroker.Need(t).Dist(), Progress: os.Stderr, Completed: completed,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, runner.Close()) })
	r, err := runner.Start(t.Context(), x.in)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Kill()) })
	select {
	case <-r.Ready():
	case <-time.After(patience):
		t.Fatal("the instance is not ready")
	}
	return r
}

// begin measures until the end of the test and publishes the load.
func (x *bench) begin(t *testing.T) (published chan error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() { stop(); x.running.Wait() })
	x.running.Go(func() { _ = x.meter.Run(ctx) }) // the end of the test is no failure
	published = make(chan error, 1)
	x.running.Go(func() { published <- x.publisher.Run(ctx, x.schedule.Arrivals()) })
	return published
}

func (x *bench) result() load.Result {
	return load.NewResult(int64(x.schedule.Messages(x.schedule.End())), x.publisher, x.meter)
}

// outputs are the messages that the broker counted in the output.
func (x *bench) outputs(t *testing.T) int64 {
	t.Helper()
	messages, _ := counters(t, x.in.Name+"-out")
	return messages
}

// awaitDone waits until this many messages are done, and returns their number. It ends early with ctx, or when none was
// done for the time quiet: the rest is lost, or still backlog.
func awaitDone(ctx context.Context, m *load.Meter, messages int64, quiet time.Duration) (done int64) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for progress := time.Now(); ; {
		now := m.Counts().Done
		if now > done {
			done, progress = now, time.Now()
		}
		if done >= messages || time.Since(progress) >= quiet {
			return done
		}
		select {
		case <-ctx.Done():
			return done
		case <-ticker.C:
		}
	}
}

func TestMeterFindsTheLatencyOfAJavaInstance(t *testing.T) {
	// Twice as much as it processes, so that latencies are seconds, and what a busy machine adds is little beside them.
	x := newBench(t, "steady", 4*time.Second, 4*time.Millisecond, 500)
	truth := load.NewTally(time.Second)
	x.java(t, func(c replica.Completion) { truth.Record(c.Sequence, c.Done.Sub(c.Published)) })
	require.NoError(t, <-x.begin(t))
	require.EqualValues(t, 2000, awaitDone(t.Context(), x.meter, 2000, patience))
	got := x.result()
	require.Zero(t, got.Missing)
	require.Zero(t, *got.Duplicates)
	require.Zero(t, got.Skew)
	require.EqualValues(t, 2000, got.Published)
	t.Logf("measured %+v, true %+v, lag %+v", got.Latencies, truth.Latencies(), got.Lag.Late)
	want := truth.Latencies()
	// The truth begins when a message was sent, the meter when it was due: the publisher's lag is the difference. A stall
	// moves a quantile by as much as it lasted, and the two means by the same.
	require.InDelta(t, want.Mean+got.Lag.Late.Mean, got.Latencies.Mean, float64(want.P50/50))
	require.InDelta(t, want.P50, got.Latencies.P50, float64(want.P50/50+got.Lag.Late.Max))
	require.InDelta(t, want.P99, got.Latencies.P99, float64(want.P99/50+got.Lag.Late.Max))
}

func TestMeterCountsTheRestOfAKilledInstance(t *testing.T) {
	x := newBench(t, "killed", time.Second, 20*time.Millisecond, 400) // 8 s of work
	first := x.java(t, nil)
	published := x.begin(t)
	require.Positive(t, awaitDone(t.Context(), x.meter, 10, patience))
	require.NoError(t, first.Kill())
	require.NoError(t, <-published)
	awaitDone(t.Context(), x.meter, 400, 500*time.Millisecond)
	left := x.result()
	require.EqualValues(t, 400, left.Done+left.Missing)
	require.Positive(t, left.Missing)

	x.java(t, nil)
	require.EqualValues(t, 400, awaitDone(t.Context(), x.meter, 400, patience))
	got := x.result()
	require.Zero(t, got.Missing)
	require.Positive(t, got.Late, "what waited for the second instance")
	require.Eventually(t, func() bool { return x.result().Done+*x.result().Duplicates == x.outputs(t) }, patience,
		100*time.Millisecond, "the broker has as many outputs as were counted")
}

// A closed loop would send nothing during the stall, and report one slow message.
func TestStalledBrokerDelaysEveryMessageThatWasDue(t *testing.T) {
	x := newBench(t, "stalled", 5*time.Second, time.Millisecond, 200)
	runner := replica.NewLight(nil)
	defer runner.Close()
	r, err := runner.Start(t.Context(), x.in)
	require.NoError(t, err)
	defer r.Kill()
	<-r.Ready()
	begun := time.Now()
	published := x.begin(t)
	require.Positive(t, awaitDone(t.Context(), x.meter, 20, patience))
	const stall, objective = 2 * time.Second, time.Second
	require.NoError(t, sharedBroker.Need(t).Pause())
	paused := time.Since(begun)
	<-time.After(stall)
	resumed := time.Since(begun)
	require.NoError(t, sharedBroker.Need(t).Resume())
	require.NoError(t, <-published)
	require.EqualValues(t, 1000, awaitDone(t.Context(), x.meter, 1000, patience))
	got := x.result()
	// The publisher began later than the test, by less than half a second.
	late := x.schedule.Messages(resumed-objective-objective/2) - x.schedule.Messages(paused)
	require.Positive(t, late)
	require.GreaterOrEqual(t, float64(got.Late), late, "those that were due in the first second of the stall")
	require.Greater(t, got.Latencies.Max, stall-100*time.Millisecond)
}

func TestConsumerCopiesEachMessageAfterItsServiceTime(t *testing.T) {
	const name, serviceTime = "copied", 5 * time.Millisecond
	x := newBench(t, name, 2*time.Second, serviceTime, 100)
	client, err := broker.Connect(sharedBroker.Need(t).ServiceURL(), "")
	require.NoError(t, err)
	t.Cleanup(client.Close)
	ctx, stop := context.WithCancel(t.Context())
	consumed := make(chan error, 1)
	go func() {
		consumed <- load.Consume(ctx, client, load.Consumption{
			Topic: x.in.Topics[0], Subscription: name, Output: x.in.Output, ServiceTime: serviceTime,
		})
	}()
	require.NoError(t, <-x.begin(t))
	require.EqualValues(t, 200, awaitDone(t.Context(), x.meter, 200, patience))
	got := x.result()
	require.GreaterOrEqual(t, got.Latencies.P50, serviceTime)
	require.Zero(t, *got.Duplicates)
	stop()
	require.NoError(t, <-consumed)
	require.ErrorContains(t, load.Consume(ctx, client, load.Consumption{}), "it must have topic")
}
