// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
)

// What a message entry gathers if Batched.
const (
	batchMax   = 100
	batchDelay = 10 * time.Millisecond
)

// Config says where to publish and what. ServiceURL and Topic are required.
type Config struct {
	// ServiceURL is the broker, e.g. "pulsar://127.0.0.1:6650".
	ServiceURL string
	// Topic exists already.
	Topic string
	// Batched gathers up to 100 messages or 10 ms into one entry, as Pulsar's clients do. Otherwise each message is one.
	Batched bool
	// Token authenticates, if not empty.
	Token string
}

func (c Config) messages() load.Messages {
	m := load.Messages{Bytes: load.StampBytes, Batching: load.Batching{MaxMessages: 1}}
	if c.Batched {
		m.Batching.MaxMessages, m.Batching.MaxDelay.Duration = batchMax, batchDelay
	}
	return m
}

// Publisher publishes to one topic.
type Publisher struct {
	*load.Publisher

	client pulsar.Client
}

// New connects to the broker.
func New(config Config) (*Publisher, error) {
	client, err := broker.Connect(config.ServiceURL, config.Token)
	if err != nil {
		return nil, err
	}
	publisher, err := load.NewPublisher(client, load.Publishing{Topic: config.Topic, Messages: config.messages()})
	if err != nil {
		client.Close()
		return nil, err
	}
	return &Publisher{Publisher: publisher, client: client}, nil
}

// Run publishes the load until it or ctx ends, which is no error, and then waits up to a minute for the answers of
// the broker. A second Run begins its load and goes on with the sequence numbers. Only one Run may be active.
func (p *Publisher) Run(ctx context.Context, shape Shape) error {
	schedule, err := shape.Schedule(nil)
	if err != nil {
		return err
	}
	return p.Publisher.Run(ctx, schedule.Arrivals())
}

// Close disconnects. It must not be called during Run.
func (p *Publisher) Close() {
	p.Publisher.Close()
	p.client.Close()
}
