// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// fakePulsar stores messages one after the other, each after a fixed time, but none while it is stalled.
type fakePulsar struct {
	pulsar.Client

	perMessage time.Duration
	// still is the stall, since begun.
	stillFrom, stillUntil time.Duration
	begun                 time.Time
	// callsBack is how long after a message was stored, and perhaps flushed, the client calls back.
	callsBack time.Duration

	mu     sync.Mutex // guards all below
	free   time.Time
	stored []stored
}

type stored struct {
	message *pulsar.ProducerMessage
	at      time.Time
}

func (f *fakePulsar) CreateProducer(pulsar.ProducerOptions) (pulsar.Producer, error) {
	return &fakeProducer{pulsar: f}, nil
}

// store returns when a message will be stored.
func (f *fakePulsar) store(message *pulsar.ProducerMessage) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := time.Now()
	if at.Before(f.free) {
		at = f.free
	}
	if since := at.Sub(f.begun); since >= f.stillFrom && since < f.stillUntil {
		at = f.begun.Add(f.stillUntil)
	}
	f.free = at.Add(f.perMessage)
	f.stored = append(f.stored, stored{message, f.free})
	return f.free
}

type fakeProducer struct {
	pulsar.Producer

	pulsar *fakePulsar
}

func (p *fakeProducer) SendAsync(
	_ context.Context, message *pulsar.ProducerMessage, answered func(pulsar.MessageID, *pulsar.ProducerMessage, error),
) {
	time.AfterFunc(time.Until(p.pulsar.store(message))+p.pulsar.callsBack, func() { answered(nil, message, nil) })
}

func (p *fakeProducer) FlushWithCtx(ctx context.Context) error {
	p.pulsar.mu.Lock()
	free := p.pulsar.free
	p.pulsar.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(free) + time.Millisecond):
		return nil
	}
}

func (p *fakeProducer) Close() {}
