// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
)

// publisher makes entries of exactly that many messages.
type publisher struct {
	t        *testing.T
	producer pulsar.Producer
	batch    int
}

// producer publishes to a topic or a partition in batches of this many messages; 1 is without batching.
func (g *ground) producer(t *testing.T, topic string, batch int) *publisher {
	t.Helper()
	producer, err := g.client.CreateProducer(pulsar.ProducerOptions{
		Topic: topic, DisableBatching: batch == 1, BatchingMaxMessages: uint(max(2, batch)),
		BatchingMaxPublishDelay:         time.Hour, // a batch ends when it is full or flushed
		PartitionsAutoDiscoveryInterval: time.Second,
	})
	require.NoError(t, err)
	t.Cleanup(producer.Close)
	return &publisher{t: t, producer: producer, batch: batch}
}

// send publishes, and returns when the broker has stored all messages.
func (p *publisher) send(messages int) {
	p.t.Helper()
	p.sendAs(messages, func(int) *pulsar.ProducerMessage { return &pulsar.ProducerMessage{Payload: []byte("12345678")} })
}

// sendLater publishes messages with a delayed delivery; each is an entry.
func (p *publisher) sendLater(messages int, delay time.Duration) {
	p.t.Helper()
	p.sendAs(messages, func(int) *pulsar.ProducerMessage {
		return &pulsar.ProducerMessage{Payload: []byte("12345678"), DeliverAfter: delay}
	})
}

// sendKeyed publishes messages with keys in turn.
func (p *publisher) sendKeyed(messages, keys int) {
	p.t.Helper()
	p.sendAs(messages, func(i int) *pulsar.ProducerMessage {
		return &pulsar.ProducerMessage{Payload: []byte("12345678"), Key: strconv.Itoa(i % keys)}
	})
}

func (p *publisher) sendAs(messages int, message func(i int) *pulsar.ProducerMessage) {
	p.t.Helper()
	require.Zero(p.t, messages%p.batch, "the last batch would not be full")
	failed := make(chan error, messages)
	for i := range messages {
		p.producer.SendAsync(p.t.Context(), message(i), func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			failed <- err
		})
	}
	require.NoError(p.t, p.producer.FlushWithCtx(p.t.Context()))
	for range messages {
		require.NoError(p.t, <-failed)
	}
}

// holder is a consumer under control of the test.
type holder struct {
	t        *testing.T
	consumer pulsar.Consumer
}

// consumer subscribes to "s" of the topic. Acknowledgements are confirmed before ack returns.
func (g *ground) consumer(t *testing.T, options pulsar.ConsumerOptions) *holder {
	t.Helper()
	options.SubscriptionInitialPosition = pulsar.SubscriptionPositionEarliest
	options.AckWithResponse = true
	options.AckGroupingOptions = &pulsar.AckGroupingOptions{MaxSize: 1}
	if options.SubscriptionName == "" {
		options.SubscriptionName = "s"
	}
	consumer, err := g.client.Subscribe(options)
	require.NoError(t, err)
	t.Cleanup(consumer.Close)
	return &holder{t: t, consumer: consumer}
}

// take receives that many messages and keeps them.
func (h *holder) take(messages int) []pulsar.Message {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), cluster.WaitLimit)
	defer cancel()
	taken := make([]pulsar.Message, 0, messages)
	for range messages {
		message, err := h.consumer.Receive(ctx)
		require.NoError(h.t, err, "after %d of %d messages", len(taken), messages)
		taken = append(taken, message)
	}
	return taken
}

// ack acknowledges, and returns when the broker has confirmed it.
func (h *holder) ack(messages []pulsar.Message) {
	h.t.Helper()
	for _, message := range messages {
		require.NoError(h.t, h.consumer.Ack(message))
	}
}

// instance has the properties by which Pulsar identifies a Function's instance.
func instance(function string, id int) map[string]string {
	return map[string]string{"application": "pulsar-function", "id": function, "instance_id": strconv.Itoa(id)}
}
