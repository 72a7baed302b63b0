// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/fake"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
)

// burstMessages are published to each Function, as one entry; no replica processes them.
const burstMessages = 100

// topics are of Functions, on a broker of their own.
type topics struct {
	*broker.Broker

	client    pulsar.Client
	producers []pulsar.Producer
}

// openTopics starts a broker, and creates for each Function its topic, subscription and producer. close ends what
// exists, also after an error.
func openTopics(ctx context.Context, functions []string, progress io.Writer) (t *topics, err error) {
	t = &topics{}
	t.Broker, err = broker.Start(ctx, broker.Config{WithoutWorker: true, Progress: progress})
	if err != nil {
		return t, err
	}
	err = fake.Each(ctx, functions, func(ctx context.Context, function string) error {
		topic := fake.TopicOf(function)
		if err := t.CreateTopic(ctx, topic, 0); err != nil {
			return err
		}
		return t.CreateSubscription(ctx, topic, subscriptionOf(function), broker.Earliest)
	})
	if err != nil {
		return t, err
	}
	if t.client, err = broker.Connect(t.ServiceURL(), ""); err != nil {
		return t, err
	}
	for _, function := range functions {
		producer, err := t.client.CreateProducer(pulsar.ProducerOptions{
			Topic: fake.TopicOf(function), BatchingMaxMessages: burstMessages,
		})
		if err != nil {
			return t, fmt.Errorf("making a producer of %s: %w", function, err)
		}
		t.producers = append(t.producers, producer)
	}
	return t, nil
}

// publish publishes to all topics.
func (t *topics) publish(ctx context.Context) error {
	return fake.Each(ctx, t.producers, func(ctx context.Context, producer pulsar.Producer) error {
		for range burstMessages {
			producer.SendAsync(ctx, &pulsar.ProducerMessage{Payload: []byte("{}")},
				func(pulsar.MessageID, *pulsar.ProducerMessage, error) {}) // a topic without messages does not wake
		}
		if err := producer.FlushWithCtx(ctx); err != nil {
			return fmt.Errorf("publishing to %s: %w", producer.Topic(), err)
		}
		return nil
	})
}

func (t *topics) close() {
	for _, producer := range t.producers {
		producer.Close()
	}
	if t.client != nil {
		t.client.Close()
	}
	if t.Broker != nil {
		_ = t.Discard() // its data is temporary
	}
}
