// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

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
	running     sync.WaitGroup
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
func (r *Readers) Close() { r.running.Wait() }

// Read subscribes to the topic, which may be a partition. It calls subscribed when it sees what is published from now
// on, and returns after the first message, or when the broker ends the subscription; seen tells which. An error means
// that there was no subscription, or that the context has ended.
func (r *Readers) Read(ctx context.Context, broker Broker, topic string, subscribed func()) (seen bool, err error) {
	c := r.acquire(ctx, broker)
	defer r.release(c)
	select {
	case <-c.opened:
	case <-c.ended:
		return false, c.why
	case <-ctx.Done():
		return false, ctx.Err()
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
			return false, answer.refused(topic, "grant consume on namespace "+backlog.NamespaceOf(backlog.Cluster{}, topic).Name+
				" to the role of the credentials")
		}
	case <-late.C:
		return false, backlog.Errorf(backlog.ErrUnavailable, "%s did not subscribe to %s within %s", broker.Host, topic,
			r.timeout)
	case <-c.ended:
		return false, c.why
	case <-ctx.Done():
		return false, ctx.Err()
	}
	c.send(frame(flow, body{}.number(1, id).number(2, 1 /* message */)))
	r.subscribed.Add(1)
	defer r.subscribed.Add(-1)
	subscribed()
	select {
	case got := <-events:
		return got.kind == message, nil
	case <-c.ended:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
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
		r.running.Go(func() {
			c.run(ctx)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.forget(c)
		})
	}
	c.users++
	return c
}

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

const (
	// protocolVersion is that of Pulsar 2.8. Without feature flags a broker ends a connection when its token expires, and
	// the next one has the new token.
	protocolVersion = 19
	// silence is the time without anything from a broker after which it is asked for a sign of life, and after as much
	// again the connection ends. A broker does the same every 30 s.
	silence = 45 * time.Second
	// maxEvents of a reader: subscribed, a message, closed by the broker.
	maxEvents = 4
)

// Broker is where a reader connects, and as whom. Connections are shared by readers for which it is the same.
type Broker struct {
	// Host is host:port.
	Host string
	// Access names the credentials.
	Access string
	// Method and Secret authenticate, as in CommandConnect.
	Method, Secret string
	// TLS of the connection; nil for none.
	TLS *tls.Config
}

// connection is one of several readers. users is guarded by Readers.mu.
type connection struct {
	broker  Broker
	dial    Dial
	timeout time.Duration
	users   int
	stop    context.CancelFunc

	// opened is closed when net is set, and ended when why is.
	opened, ended chan struct{}
	net           net.Conn
	why           error

	// mu guards events, of each reader by its number, and last.
	mu     sync.Mutex
	events map[uint64]chan command
	last   uint64
}

func (c *connection) run(ctx context.Context) {
	defer close(c.ended)
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	conn, err := c.open(limited)
	cancel()
	if err != nil {
		c.why = err
		return
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // nothing to lose
	defer func() { _ = conn.Close() }()
	from := bufio.NewReader(conn)
	if err := c.authenticate(conn, from); err != nil {
		c.why = err
		return
	}
	c.net = conn
	close(c.opened)
	c.why = c.receive(from)
}

func (c *connection) open(ctx context.Context) (net.Conn, error) {
	conn, err := c.dial(ctx, "tcp", c.broker.Host)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if c.broker.TLS == nil {
		return conn, nil
	}
	config := c.broker.TLS.Clone()
	config.NextProtos = nil
	config.ServerName, _, _ = net.SplitHostPort(c.broker.Host) // it was dialed
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, c.unreachable(err)
	}
	return secured, nil
}

func (c *connection) authenticate(conn net.Conn, from *bufio.Reader) error {
	hello := body{}.string(1, "pulsar-autoscaler").number(4, protocolVersion)
	if c.broker.Method != "" {
		hello = hello.string(3, c.broker.Secret).string(5, c.broker.Method)
	}
	_ = conn.SetDeadline(time.Now().Add(c.timeout)) // a closed connection fails below
	if _, err := conn.Write(frame(connect, hello)); err != nil {
		return c.unreachable(err)
	}
	answer, err := read(from)
	switch {
	case err != nil:
		return c.unreachable(err)
	case answer.kind == failure:
		return answer.refused(c.broker.Host, "correct the credentials")
	case answer.kind != connected:
		return backlog.Errorf(backlog.ErrProtocol, "%s answers command %d to a connection", c.broker.Host, answer.kind)
	}
	_ = conn.SetDeadline(time.Time{})
	return nil
}

// receive hands commands to their readers until the connection ends.
func (c *connection) receive(from *bufio.Reader) error {
	for asked := false; ; {
		_ = c.net.SetReadDeadline(time.Now().Add(silence)) // a closed connection fails below
		if _, err := from.Peek(1); err != nil {
			if !backlog.TimedOut(err) || asked {
				return c.unreachable(err)
			}
			asked = true
			c.send(frame(ping, nil))
			continue
		}
		asked = false
		got, err := read(from)
		switch {
		case err != nil:
			return c.unreachable(err)
		case got.kind == authChallenge:
			return backlog.Errorf(backlog.ErrUnavailable, "%s asks for newer credentials", c.broker.Host)
		case got.kind == ping:
			c.send(frame(pong, nil))
		case got.kind == message || got.kind == success || got.kind == failure || got.kind == closeConsumer:
			c.deliver(got)
		}
	}
}

// deliver never blocks: a reader has room for all that it waits for.
func (c *connection) deliver(got command) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.events[got.id] <- got:
	default:
	}
}

// send writes a frame. If that fails the connection ends, which its readers see.
func (c *connection) send(framed []byte) {
	_ = c.net.SetWriteDeadline(time.Now().Add(c.timeout))
	if _, err := c.net.Write(framed); err != nil {
		_ = c.net.Close()
	}
}

// add returns the number and the events of a new reader.
func (c *connection) add() (uint64, <-chan command) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	events := make(chan command, maxEvents)
	c.events[c.last] = events
	return c.last, events
}

func (c *connection) remove(id uint64) {
	c.mu.Lock()
	delete(c.events, id)
	c.mu.Unlock()
	c.send(frame(closeConsumer, body{}.number(1, id).number(2, id)))
}

func (c *connection) unreachable(err error) error {
	return backlog.Errorf(backlog.ErrUnreachable, "%s: %s", c.broker.Host, backlog.ConnectionCause(err, c.timeout)).
		Because(err)
}
