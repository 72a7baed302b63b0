// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

const (
	// finest is the shortest wait for the next message: 1000 messages/s leave one by one, more in small groups.
	finest = time.Millisecond
	// lookAhead is the longest wait without a message.
	lookAhead = 10 * time.Millisecond
	// flushTimeout bounds the wait for the broker at the end: a stalled machine needs 20 s and more.
	flushTimeout = time.Minute
)

// Publishing configures a Publisher. Topic is required.
type Publishing struct {
	// Topic exists already.
	Topic string
	// Run of the messages, for the Meter. Empty: messages have no property.
	Run string
	// Messages are validated, with their defaults.
	Messages Messages
	// Seed of the keys.
	Seed uint64
}

// Publisher publishes to one topic when messages are due, independently of earlier ones (open-loop).
type Publisher struct {
	config    Publishing
	keyOf     func(sequence uint64) string
	producers []pulsar.Producer
	// slots are taken by messages that wait for the broker.
	slots chan struct{}
	lag   *lag

	sent, published atomic.Int64
}

// NewPublisher creates the producers. It does not close the client.
func NewPublisher(client pulsar.Client, config Publishing) (*Publisher, error) {
	config.Messages = config.Messages.WithDefaults()
	if err := config.Messages.Validate(); err != nil {
		return nil, err
	}
	switch {
	case config.Topic == "":
		return nil, errors.New("load.Publishing.Topic is empty: it must name an existing topic")
	case config.Messages.File != "" && (config.Messages.payload == nil || config.Run == ""):
		return nil, errors.New("load.Publishing.Messages has a file: Open it, and set Run, which identifies the messages")
	}
	p := &Publisher{config: config, keyOf: config.Messages.Keys.keyOf(config.Seed), lag: newLag()}
	p.slots = make(chan struct{}, config.Messages.pending())
	for range config.Messages.Publishers {
		producer, err := client.CreateProducer(config.Messages.producer(config.Topic))
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("publishing to %s: %w", config.Topic, err)
		}
		p.producers = append(p.producers, producer)
	}
	return p, nil
}

// Run publishes until the load or ctx ends, which is no error, and then waits up to a minute for the broker.
// Another Run continues the sequence numbers. Only one Run may be active.
func (p *Publisher) Run(ctx context.Context, arrivals *Arrivals) error {
	begun := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due, ok := arrivals.Next(time.Since(begun) + lookAhead)
		wait := time.Until(begun.Add(due))
		if !ok {
			if wait = min(lookAhead, arrivals.End()-time.Since(begun)); wait <= 0 {
				return p.flush(ctx)
			}
		}
		if wait > 0 {
			timer.Reset(max(finest, wait))
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
		}
		if ctx.Err() != nil {
			return p.flush(ctx)
		}
		if ok {
			p.send(ctx, begun.Add(due))
		}
	}
}

// send passes one message to a producer. While too many wait for the broker it blocks until ctx ends.
func (p *Publisher) send(ctx context.Context, due time.Time) {
	select {
	case p.slots <- struct{}{}:
	default:
		begun := time.Now()
		select {
		case p.slots <- struct{}{}:
			p.lag.blocked(begun, time.Now())
		case <-ctx.Done():
			return
		}
	}
	now := time.Now()
	p.lag.sent(due, now)
	// By the current wall clock, which may have been set since the load began.
	due = now.Add(-now.Sub(due))
	sequence := uint64(p.sent.Add(1)) //nolint:gosec // counts up from 1
	s := stamp{run: p.config.Run, sequence: sequence, due: due}
	message := &pulsar.ProducerMessage{Payload: p.config.Messages.payloadOf(s), Key: p.keyOf(sequence)}
	if p.config.Run != "" {
		message.Properties = map[string]string{property: s.property()}
	}
	producer := p.producers[sequence%uint64(len(p.producers))]
	producer.SendAsync(ctx, message, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
		if err == nil { // what is abandoned at the end of ctx is not
			p.published.Add(1)
		}
		<-p.slots
	})
}

func (p *Publisher) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	for _, producer := range p.producers {
		if err := producer.FlushWithCtx(ctx); err != nil {
			return fmt.Errorf("publishing the last messages to %s: %w", p.config.Topic, err)
		}
	}
	return p.settle(ctx)
}

// settle waits until each message is counted: the client forgets a message before it calls back, so that a flush in
// between does not wait for it.
func (p *Publisher) settle(ctx context.Context) error {
	taken := 0
	defer func() {
		for range taken {
			<-p.slots
		}
	}()
	for ; taken < cap(p.slots); taken++ {
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("publishing the last messages to %s: %w", p.config.Topic, ctx.Err())
		}
	}
	return nil
}

// Sent is the number of messages passed to the client: the broker has stored at most that many, and at least Published.
func (p *Publisher) Sent() int64 { return p.sent.Load() }

// Published is the number of messages that the broker has stored.
func (p *Publisher) Published() int64 { return p.published.Load() }

// Lag is how late the publisher itself has been.
func (p *Publisher) Lag() Lag { return p.lag.summary() }

// Close disconnects the producers. It must not be called during Run.
func (p *Publisher) Close() {
	for _, producer := range p.producers {
		producer.Close()
	}
}
