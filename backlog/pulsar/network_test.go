// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// network connects a Source to fake brokers in memory, so that time in a synctest bubble advances only while all
// goroutines wait. A fault applies to each connection that is opened while it lasts.
type network struct {
	t *testing.T

	mu sync.Mutex
	// listeners, faults and dials are guarded by mu.
	listeners map[string]*pipeListener
	faults    map[string]fault
	dials     map[string]int
}

// fault wraps the broker's end of a connection; nil refuses it.
type fault func(net.Conn) net.Conn

func refuse(net.Conn) net.Conn { return nil }

func newNetwork(t *testing.T) *network {
	t.Helper()
	return &network{t: t, listeners: map[string]*pipeListener{}, faults: map[string]fault{}, dials: map[string]int{}}
}

// broker starts a fake broker under a name such as broker-0:8080.
func (n *network) broker(host string) *fakeBroker {
	n.t.Helper()
	b := &fakeBroker{Server: &httptest.Server{URL: "http://" + host}, answers: map[string][]http.HandlerFunc{}}
	listener := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: b, ReadHeaderTimeout: time.Hour}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends when it is closed
	}()
	n.t.Cleanup(func() {
		_ = server.Close() // there is nothing to lose
		<-done
		after(time.Hour) // of the bubble: for what is still held back
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[host] = listener
	return b
}

// fail breaks new connections to the host; nil repairs them.
func (n *network) fail(host string, how fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults[host] = how
}

// dialed is the number of requested connections.
func (n *network) dialed(host string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[host]
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	listener, how := n.listeners[address], n.faults[address]
	n.dials[address]++
	n.mu.Unlock()
	client, server := net.Pipe()
	if how != nil {
		server = how(server)
	}
	if listener == nil || server == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	select {
	case listener.conns <- server:
		return client, nil
	case <-listener.closed:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// source returns a Source that calls through the network. It has to be closed before the bubble ends.
func (n *network) source(config Config) *Source {
	n.t.Helper()
	if config.Registerer == nil {
		config.Registerer = prometheus.NewRegistry()
	}
	for host := range n.listeners {
		config.AllowedHosts = append(config.AllowedHosts, "http://"+host)
	}
	config.dial = n.dial
	source, err := New(config)
	require.NoError(n.t, err)
	n.t.Cleanup(source.Close)
	return source
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// tampered changes the bytes of a broker.
type tampered struct {
	net.Conn

	write func(p []byte) (int, error)
}

func (c tampered) Write(p []byte) (int, error) { return c.write(p) }

// delays delays each piece.
func delays(by time.Duration) fault {
	return func(conn net.Conn) net.Conn {
		return tampered{conn, func(p []byte) (int, error) {
			after(by)
			return conn.Write(p)
		}}
	}
}

// cutsAfter ends the connection after a number of bytes.
func cutsAfter(left int) fault {
	return func(conn net.Conn) net.Conn {
		left := left
		return tampered{conn, func(p []byte) (int, error) {
			if len(p) <= left {
				left -= len(p)
				return conn.Write(p)
			}
			n, _ := conn.Write(p[:left])
			_ = conn.Close()
			return n, net.ErrClosed
		}}
	}
}

// drips sends a byte at a time, slowly.
func drips(every time.Duration) fault {
	return func(conn net.Conn) net.Conn {
		return tampered{conn, func(p []byte) (int, error) {
			for i := range p {
				after(every)
				if _, err := conn.Write(p[i : i+1]); err != nil {
					return i, err
				}
			}
			return len(p), nil
		}}
	}
}

// swallows reads everything and sends nothing.
func swallows(conn net.Conn) net.Conn {
	return tampered{conn, func(p []byte) (int, error) { return len(p), nil }}
}

// sendsInstead replaces the broker's answer, and repeats it until the client disconnects.
func sendsInstead(text string) fault {
	return func(conn net.Conn) net.Conn {
		return tampered{conn, func([]byte) (int, error) {
			for {
				if _, err := conn.Write([]byte(text)); err != nil {
					return 0, err
				}
			}
		}}
	}
}
