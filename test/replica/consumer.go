// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
)

// resubscribe is the pause between two tries to subscribe.
const resubscribe = 250 * time.Millisecond

// Consumer is a replica of Light.
type Consumer struct {
	in         Instance
	client     pulsar.Client
	completed  func(Completion)
	downstream *Downstream
	metrics    *metrics
	server     *server
	ready      chan struct{}
	done       chan struct{}
	kill, stop context.CancelFunc
	service    atomic.Int64 // time.Duration
	failEvery  atomic.Int64
	pace       pacer           // of run alone
	output     pulsar.Producer // of run alone; nil is none

	mu   sync.Mutex // guards hung and err
	hung chan struct{}
	err  error
}

var _ Replica = (*Consumer)(nil)

// Ready is closed when the consumer has subscribed to all topics.
func (c *Consumer) Ready() <-chan struct{} { return c.ready }

// Done is closed when the replica has ended.
func (c *Consumer) Done() <-chan struct{} { return c.done }

// MetricsURL is where the metrics are served, from Start on.
func (c *Consumer) MetricsURL() string { return c.server.url }

// SetServiceTime changes the cost of the messages after the one in process; below 0 is 0.
func (c *Consumer) SetServiceTime(cost time.Duration) { c.service.Store(int64(max(0, cost))) }

// SetFailEvery makes every n-th call fail; 0 or less is never.
func (c *Consumer) SetFailEvery(n int) { c.failEvery.Store(int64(max(0, n))) }

// Stop finishes the message in process, acknowledges it and disconnects; when ctx is done first, as Kill. It ends a
// consumer that hangs.
func (c *Consumer) Stop(ctx context.Context) error {
	c.stop()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return c.Kill()
	}
}

// Kill disconnects without finishing the message in process. The error is always nil.
func (c *Consumer) Kill() error {
	c.kill()
	<-c.done
	return nil
}

// Hang makes the replica neither process nor acknowledge, with its connection alive, until Unhang.
func (c *Consumer) Hang() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hung == nil {
		c.hung = make(chan struct{})
	}
}

// Unhang ends Hang.
func (c *Consumer) Unhang() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hung != nil {
		close(c.hung)
		c.hung = nil
	}
}

// Err is why the last try to subscribe failed, nil once the replica is ready.
func (c *Consumer) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Consumer) setErr(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// run is the life of the replica: killed ends at once, stopping, its child, after the message in process.
func (c *Consumer) run(killed, stopping context.Context) {
	defer close(c.done)
	defer c.kill()
	defer func() { _ = c.server.close() }() // a server that ended early is seen by whoever reads it
	if sleep(stopping, c.in.StartDelay) != nil {
		return
	}
	messages := make(chan pulsar.ConsumerMessage) // without a buffer: the queue is the receiver queue alone
	consumer, err := c.subscribe(stopping, messages)
	if err != nil {
		return
	}
	defer consumer.Close()
	if c.output != nil {
		defer c.output.Close()
	}
	close(c.ready)
	for n := int64(1); ; n++ {
		asked := time.Now()
		select {
		case <-stopping.Done():
			return
		case message := <-messages:
			if !c.process(killed, stopping, asked, n, message) {
				return
			}
		}
	}
}

// process handles the n-th message and says whether there may be another.
func (c *Consumer) process(killed, stopping context.Context, asked time.Time, n int64,
	message pulsar.ConsumerMessage,
) bool {
	begun := time.Now()
	c.metrics.begin(begun)
	if c.hang(stopping) != nil {
		return false
	}
	due := c.pace.due(asked, begun, time.Duration(c.service.Load()))
	if answered := c.downstream.answers(begun); answered.After(due) {
		due = answered
	}
	if sleep(killed, time.Until(due)) != nil {
		return false
	}
	done := time.Now()
	every := c.failEvery.Load()
	failed := every > 0 && n%every == 0
	c.metrics.end(done.Sub(begun), failed)
	if failed {
		message.Nack(message.Message)
		return true
	}
	if !c.forward(killed, message) {
		return false
	}
	// Acknowledgements travel in groups after 100 ms, as those of the Java client do; a lost one is a message again.
	_ = message.Ack(message.Message)
	sequence, ok := load.Sequence(message.Payload())
	if !ok {
		sequence = 0
	}
	c.completed(Completion{
		Published: message.PublishTime(), Done: done, Took: done.Sub(begun), Instance: c.in.ID,
		Sequence: sequence,
	})
	return true
}

// forward publishes the message to the output, before it is acknowledged, as a function instance does; false when the
// replica ends before.
func (c *Consumer) forward(ctx context.Context, message pulsar.ConsumerMessage) bool {
	if c.output == nil {
		return true
	}
	_, err := c.output.Send(ctx, &pulsar.ProducerMessage{
		Payload: message.Payload(), Key: message.Key(), Properties: message.Properties(),
	})
	return err == nil
}

// hang blocks while the replica is told to hang.
func (c *Consumer) hang(ctx context.Context) error {
	c.mu.Lock()
	hung := c.hung
	c.mu.Unlock()
	if hung == nil {
		return nil
	}
	select {
	case <-hung:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// subscribe tries until it works or ctx ends.
func (c *Consumer) subscribe(ctx context.Context, messages chan pulsar.ConsumerMessage) (pulsar.Consumer, error) {
	wanted, err := options(c.in, messages)
	if err != nil {
		return nil, err
	}
	for {
		consumer, err := c.try(ctx, wanted)
		if err == nil {
			if err = c.connectOutput(); err == nil {
				c.setErr(nil)
				return consumer, nil
			}
			consumer.Close()
		}
		c.setErr(fmt.Errorf("subscribing to %q%s: %w", c.in.Topics, c.in.TopicPattern, err))
		if err := sleep(ctx, resubscribe); err != nil {
			return nil, err
		}
	}
}

// connectOutput makes the producer of the output, if there is one. It never gives a message up: a replica that ends
// leaves it unacknowledged.
func (c *Consumer) connectOutput() (err error) {
	if c.in.Output == "" {
		return nil
	}
	c.output, err = c.client.CreateProducer(pulsar.ProducerOptions{
		Topic: c.in.Output, DisableBatching: true, SendTimeout: -1,
	})
	if err != nil {
		return fmt.Errorf("publishing to %s: %w", c.in.Output, err)
	}
	return nil
}

// try subscribes once. The client takes no context, so that an end of ctx leaves the try to itself: it closes what
// comes of it, 10 s later at most.
func (c *Consumer) try(ctx context.Context, wanted pulsar.ConsumerOptions) (pulsar.Consumer, error) {
	type result struct {
		consumer pulsar.Consumer
		err      error
	}
	tried := make(chan result, 1)
	go func() {
		consumer, err := c.client.Subscribe(wanted)
		tried <- result{consumer, err}
	}()
	select {
	case got := <-tried:
		return got.consumer, got.err
	case <-ctx.Done():
		go func() {
			if got := <-tried; got.err == nil {
				got.consumer.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// sleep returns nil after d, at once if d is not positive, or the error of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
