// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// Consumption says what a Consumer does. All fields but ReceiverQueueSize are required.
type Consumption struct {
	// Topic is consumed by a Shared Subscription, and Output gets a copy of each message after ServiceTime.
	Topic, Subscription, Output string
	ServiceTime                 time.Duration
	// ReceiverQueueSize is how many messages are prefetched. 0: 1,000, as clients do.
	ReceiverQueueSize int
}

func (c Consumption) validate() error {
	if c.Topic == "" || c.Subscription == "" || c.Output == "" || c.ServiceTime <= 0 {
		return fmt.Errorf("load.Consumption is %+v: it must have topic, subscription, output and a service time above 0", c)
	}
	return nil
}

// Consume processes one message after another until ctx ends, as the example Function does: it waits for the service
// time and copies the message. A message is acknowledged when Pulsar has stored its copy.
func Consume(ctx context.Context, client pulsar.Client, config Consumption) error {
	if err := config.validate(); err != nil {
		return err
	}
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: config.Output, SendTimeout: -1})
	if err != nil {
		return fmt.Errorf("publishing to %s: %w", config.Output, err)
	}
	defer producer.Close()
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{
		Topic: config.Topic, SubscriptionName: config.Subscription, Type: pulsar.Shared,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest, ReceiverQueueSize: config.ReceiverQueueSize,
	})
	if err != nil {
		return fmt.Errorf("subscribing to %s: %w", config.Topic, err)
	}
	defer consumer.Close()
	for {
		message, err := consumer.Receive(ctx)
		switch {
		case ctx.Err() != nil:
			return flush(ctx, producer)
		case err != nil:
			return fmt.Errorf("consuming %s: %w", config.Topic, err)
		}
		<-time.After(config.ServiceTime) // also at the end: it is in work
		producer.SendAsync(context.WithoutCancel(ctx), &pulsar.ProducerMessage{
			Payload: message.Payload(), Key: message.Key(), Properties: message.Properties(),
		}, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			if err != nil {
				consumer.Nack(message)
				return
			}
			_ = consumer.Ack(message) // what is not acknowledged comes again, and counts as a duplicate
		})
	}
}

// flush waits for the copies of what was consumed, for less than the grace period of a pod.
func flush(ctx context.Context, producer pulsar.Producer) error {
	const timeout = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if err := producer.FlushWithCtx(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("publishing the last copies: %w", err)
	}
	return nil
}
