// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"crypto/rand"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// SubscriptionPrefix begins the names of the subscriptions of readers.
const SubscriptionPrefix = "pulsar-autoscaler-"

// Dial opens a connection.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Readers share connections to brokers. It is safe for concurrent use.
type Readers struct {
	dial    Dial
	timeout time.Duration

	// running are the goroutines of connections.
	running     errgroup.Group
	mu          sync.Mutex
	connections map[Broker]*connection
	subscribed  atomic.Int64
}

// New returns Readers that wait that long for a connection, and for a subscription.
func New(dial Dial, timeout time.Duration) *Readers {
	return &Readers{dial: dial, timeout: timeout, connections: map[Broker]*connection{}}
}

// Subscribed is the number of readers that wait for a message.
func (r *Readers) Subscribed() int { return int(r.subscribed.Load()) }

// Close waits for the connections. All calls of Read have ended.
func (r *Readers) Close() { _ = r.running.Wait() } // they return no error

// Read subscribes to the topic, which may be a partition. It calls subscribed when it sees what is published from now
// on, and returns nil after the first message, or when the broker ends the subscription. An error means that there was
// none, or that the context has ended.
func (r *Readers) Read(ctx context.Context, broker Broker, topic string, subscribed func()) error {
	c := r.acquire(ctx, broker)
	defer r.release(c)
	select {
	case <-c.opened:
	case <-c.ended:
		return c.why
	case <-ctx.Done():
		return ctx.Err()
	}
	id, events := c.add()
	defer c.remove(id)
	const exclusive, latest, no = 0, 0, 0
	c.send(frame(subscribe, body{}.string(1, topic).string(2, SubscriptionPrefix+rand.Text()).number(3, exclusive).
		number(4, id).number(5, id).string(6, "pulsar-autoscaler").
		number(8, no /* durable */).number(13, latest).number(15, no /* create the topic */)))
	late := time.NewTimer(r.timeout)
	defer late.Stop()
	select {
	case answer := <-events:
		if answer.kind != success {
			return answer.refused(topic, "grant consume on namespace "+backlog.NamespaceOf(backlog.Cluster{}, topic).Name+
				" to the role of the credentials")
		}
	case <-late.C:
		return backlog.Errorf(backlog.ErrUnavailable, "%s did not subscribe to %s within %s", broker.Host, topic,
			r.timeout)
	case <-c.ended:
		return c.why
	case <-ctx.Done():
		return ctx.Err()
	}
	c.send(frame(flow, body{}.number(1, id).number(2, 1 /* message */)))
	r.subscribed.Add(1)
	defer r.subscribed.Add(-1)
	subscribed()
	select {
	case <-events:
	case <-c.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// acquire returns the connection to the broker with its credentials, perhaps a new one.
func (r *Readers) acquire(ctx context.Context, broker Broker) *connection {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.connections[broker]
	if c == nil {
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // it may outlive its first reader
		c = &connection{
			broker: broker, dial: r.dial, timeout: r.timeout, stop: stop,
			opened: make(chan struct{}), ended: make(chan struct{}), events: map[uint64]chan command{},
		}
		r.connections[broker] = c
		r.running.Go(func() error {
			c.run(ctx)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.forget(c)
			return nil
		})
	}
	c.users++
	return c
}

// release ends a connection without readers.
func (r *Readers) release(c *connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.users--; c.users == 0 {
		r.forget(c)
		c.stop()
	}
}

// forget makes the next reader connect again. mu is held.
func (r *Readers) forget(c *connection) {
	if r.connections[c.broker] == c {
		delete(r.connections, c.broker)
	}
}
