// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"fmt"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"golang.org/x/time/rate"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
)

// resubscribe is the pause between two attempts to subscribe.
const resubscribe = 250 * time.Millisecond

// Consumer is a replica of Light.
type Consumer struct {
	in         Instance
	wanted     pulsar.ConsumerOptions
	client     pulsar.Client
	completed  func(Completion)
	downstream *rate.Limiter // nil without one
	metrics    *metrics
	server     *httptest.Server
	ready      chan struct{}
	done       chan struct{}
	kill, stop context.CancelFunc
	pace       pacer           // used by run only
	output     pulsar.Producer // used by run only; nil without an output

	mu  sync.Mutex // guards err
	err error
}

var _ Replica = (*Consumer)(nil)

// Ready is closed when the consumer has subscribed to all topics.
func (c *Consumer) Ready() <-chan struct{} { return c.ready }

// Done is closed when the replica has ended.
func (c *Consumer) Done() <-chan struct{} { return c.done }

// MetricsURL is where the metrics are served, from Start on.
func (c *Consumer) MetricsURL() string { return c.server.URL + "/metrics" }

// Stop finishes and acknowledges the message in process, then disconnects. When ctx ends first it does as Kill.
func (c *Consumer) Stop(ctx context.Context) error {
	c.stop()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return c.Kill()
	}
}

// Kill disconnects and does not finish the message in process. The error is always nil.
func (c *Consumer) Kill() error {
	c.kill()
	<-c.done
	return nil
}

// Err is the error of the last attempt to subscribe, nil once the replica is ready.
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

// run is the lifetime of the replica: killed ends it at once; stopping, a child of killed, after the message in
// process.
func (c *Consumer) run(killed, stopping context.Context) {
	defer close(c.done)
	defer c.kill()
	defer func() { c.server.CloseClientConnections(); c.server.Close() }() // like a process that ends
	consumer, err := c.subscribe(stopping)
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
		case message := <-c.wanted.MessageChannel:
			if !c.process(killed, asked, n, message) {
				return
			}
		}
	}
}

// process handles the n-th message. It returns false when the replica ends.
func (c *Consumer) process(killed context.Context, asked time.Time, n int64, message pulsar.ConsumerMessage) bool {
	begun := time.Now()
	c.metrics.begin(begun)
	due := c.pace.due(asked, begun, c.in.ServiceTime)
	if c.downstream != nil {
		if answered := time.Now().Add(c.downstream.Reserve().Delay()); answered.After(due) {
			due = answered
		}
	}
	if command.Pause(killed, time.Until(due)) != nil {
		return false
	}
	done := time.Now()
	every := int64(c.in.FailEvery)
	failed := every > 0 && n%every == 0
	c.metrics.end(done.Sub(begun), failed)
	if failed {
		message.Nack(message.Message)
		return true
	}
	if !c.forward(killed, message) {
		return false
	}
	// As in the Java client, acknowledgements are sent in groups after 100 ms. Pulsar redelivers messages of lost ones.
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

// forward publishes the message to the output before it is acknowledged, as a function instance does. It returns false
// when the replica ends first.
func (c *Consumer) forward(ctx context.Context, message pulsar.ConsumerMessage) bool {
	if c.output == nil {
		return true
	}
	_, err := c.output.Send(ctx, &pulsar.ProducerMessage{
		Payload: message.Payload(), Key: message.Key(), Properties: message.Properties(),
	})
	return err == nil
}

// subscribe retries until it has subscribed or ctx ends.
func (c *Consumer) subscribe(ctx context.Context) (pulsar.Consumer, error) {
	for {
		consumer, err := c.try(ctx)
		if err == nil {
			if err = c.connectOutput(); err == nil {
				c.setErr(nil)
				return consumer, nil
			}
			consumer.Close()
		}
		c.setErr(fmt.Errorf("subscribing to %q%s: %w", c.in.Topics, c.in.TopicPattern, err))
		if err := command.Pause(ctx, resubscribe); err != nil {
			return nil, err
		}
	}
}

// connectOutput creates the producer of the output, if there is one. The producer retries forever: messages of a
// replica that ends stay unacknowledged.
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

// try subscribes once. The client takes no context: when ctx ends first, the attempt continues for at most 10 s, and
// its consumer is closed.
func (c *Consumer) try(ctx context.Context) (pulsar.Consumer, error) {
	type result struct {
		consumer pulsar.Consumer
		err      error
	}
	tried := make(chan result, 1)
	go func() {
		consumer, err := c.client.Subscribe(c.wanted)
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
