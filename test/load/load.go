// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
)

const (
	sequenceBytes = 8
	pendingMax    = 10_000
	batchMax      = 100
	batchDelay    = 10 * time.Millisecond
	flushTimeout  = 10 * time.Second
)

// Batching says whether messages share entries, as msgBacklog counts them.
type Batching int

const (
	// BatchingOff makes every message an entry of its own.
	BatchingOff Batching = iota
	// BatchingOn gathers up to 100 messages or 10 ms into one entry, as Pulsar's clients do.
	BatchingOn
)

// Config says where to publish and what. ServiceURL and Topic are required.
type Config struct {
	// ServiceURL is the broker, e.g. "pulsar://127.0.0.1:6650".
	ServiceURL string
	// Topic exists already.
	Topic string
	// Batching is BatchingOff or BatchingOn.
	Batching Batching
	// Bytes is the size of a message, of which the first 8 are its sequence number; 0 is 8.
	Bytes int
	// Keys is the number of different message keys, taken in turn; 0 is no key.
	Keys int
	// Token authenticates, if not empty.
	Token string
}

func (c Config) validate() error {
	switch {
	case c.ServiceURL == "":
		return errors.New("load.Config.ServiceURL is empty: it must be the broker's, e.g. pulsar://127.0.0.1:6650")
	case c.Topic == "":
		return errors.New("load.Config.Topic is empty: it must name an existing topic")
	case c.Batching != BatchingOff && c.Batching != BatchingOn:
		return fmt.Errorf("load.Config.Batching is %d: it must be BatchingOff or BatchingOn", c.Batching)
	case c.Bytes != 0 && c.Bytes < sequenceBytes:
		return fmt.Errorf("load.Config.Bytes is %d: it must be 0 or at least %d", c.Bytes, sequenceBytes)
	case c.Keys < 0:
		return fmt.Errorf("load.Config.Keys is %d: it must be 0 or more", c.Keys)
	}
	return nil
}

// Publisher publishes to one topic.
type Publisher struct {
	config    Config
	client    pulsar.Client
	producer  pulsar.Producer
	sent      atomic.Int64
	published atomic.Int64
	failed    atomic.Int64
}

// New connects to the broker.
func New(config Config) (*Publisher, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	client, err := broker.Connect(config.ServiceURL, config.Token)
	if err != nil {
		return nil, err
	}
	producer, err := client.CreateProducer(pulsar.ProducerOptions{
		Topic:                   config.Topic,
		DisableBatching:         config.Batching == BatchingOff,
		BatchingMaxMessages:     batchMax,
		BatchingMaxPublishDelay: batchDelay,
		MaxPendingMessages:      pendingMax,
		SendTimeout:             -1, // a broker that comes back gets what it missed
	})
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("publishing to %s: %w", config.Topic, err)
	}
	return &Publisher{config: config, client: client, producer: producer}, nil
}

// Run publishes along the profile until ctx ends, which is no error, and then waits up to 10 s for the answers of the
// broker. A second Run begins the profile anew and goes on with the sequence numbers. Only one Run may be active.
func (p *Publisher) Run(ctx context.Context, profile Profile) error {
	plan, start := schedule{profile: profile}, time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return p.flush(ctx)
		case <-timer.C:
		}
		for n := plan.advance(time.Since(start)); n > 0 && ctx.Err() == nil; n-- {
			plan.sent++
			p.send(ctx)
		}
		timer.Reset(plan.wait())
	}
}

// send hands one message to the producer. It blocks while 10 000 messages are unanswered, and then until ctx ends.
func (p *Publisher) send(ctx context.Context) {
	sequence := p.sent.Add(1)
	payload := make([]byte, max(sequenceBytes, p.config.Bytes))
	binary.BigEndian.PutUint64(payload, uint64(sequence)) //nolint:gosec // counts up from 1
	message := &pulsar.ProducerMessage{Payload: payload}
	if p.config.Keys > 0 {
		message.Key = strconv.FormatInt(sequence%int64(p.config.Keys), 10)
	}
	p.producer.SendAsync(ctx, message, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
		if err != nil {
			p.failed.Add(1)
			return
		}
		p.published.Add(1)
	})
}

func (p *Publisher) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := p.producer.FlushWithCtx(ctx); err != nil {
		return fmt.Errorf("publishing the last messages to %s: %w", p.config.Topic, err)
	}
	return nil
}

// Sent is the number of messages that were given to the client: the broker has stored at most that many, and at least
// Published.
func (p *Publisher) Sent() int64 { return p.sent.Load() }

// Published is the number of messages that the broker has stored.
func (p *Publisher) Published() int64 { return p.published.Load() }

// Failed is the number of messages that were given up, at the end of ctx.
func (p *Publisher) Failed() int64 { return p.failed.Load() }

// Close disconnects. It must not be called during Run.
func (p *Publisher) Close() {
	p.producer.Close()
	p.client.Close()
}

// Sequence is the number of a message of a Publisher, from 1; false for a payload that cannot be one.
func Sequence(payload []byte) (uint64, bool) {
	if len(payload) < sequenceBytes {
		return 0, false
	}
	return binary.BigEndian.Uint64(payload), true
}
