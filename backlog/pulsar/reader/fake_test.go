// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protowire"
)

// request is a command that a fakeBroker got.
type request struct {
	kind    kind
	numbers map[protowire.Number]uint64
	texts   map[protowire.Number]string
}

// fakeBroker answers as a broker does, over pipes.
type fakeBroker struct {
	running errgroup.Group
	// mu guards the rest.
	mu       sync.Mutex
	dials    []string
	requests []request
	// conns are open, and subscribed has those of topics, with the numbers of their consumers.
	conns      map[net.Conn]bool
	subscribed map[string]consumer
	// refusals are the codes with which it refuses a kind of command, and it may answer nothing, or be down.
	refusals     map[kind]uint64
	silent, down bool
}

type consumer struct {
	conn net.Conn
	id   uint64
}

func newFakeBroker(t *testing.T) *fakeBroker {
	t.Helper()
	f := &fakeBroker{conns: map[net.Conn]bool{}, subscribed: map[string]consumer{}, refusals: map[kind]uint64{}}
	t.Cleanup(func() { _ = f.running.Wait() })
	return f
}

func (f *fakeBroker) dial(_ context.Context, _, address string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	down := false
	f.set(func() {
		f.dials = append(f.dials, address)
		if down = f.down; !down {
			f.conns[ours] = true
		}
	})
	if down {
		return nil, errors.New("no broker listens")
	}
	f.running.Go(func() error {
		for {
			got, err := receive(ours)
			if err == nil {
				_, err = ours.Write(f.answer(ours, got))
			}
			if err != nil {
				f.set(func() { delete(f.conns, ours) })
				return err
			}
		}
	})
	return theirs, nil
}

func (f *fakeBroker) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// answer returns what to send, perhaps nothing.
func (f *fakeBroker) answer(conn net.Conn, got request) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, got)
	code, id := f.refusals[got.kind], got.numbers[4]
	switch {
	case f.silent:
	case code != 0:
		return frame(failure, body{}.number(1, id).number(2, code).string(3, "it says why"))
	case got.kind == connect:
		return frame(connected, body{}.string(1, "Pulsar"))
	case got.kind == subscribe:
		f.subscribed[got.texts[1]] = consumer{conn, id}
		return frame(success, body{}.number(1, id))
	case got.kind == closeConsumer:
		for topic, one := range f.subscribed {
			if one == (consumer{conn, got.numbers[1]}) {
				delete(f.subscribed, topic)
			}
		}
	case got.kind == ping:
		return frame(pong, nil)
	}
	return nil
}

// publish sends a message with a payload to the consumer of a topic.
func (f *fakeBroker) publish(topic string, payload int) {
	f.mu.Lock()
	to, exists := f.subscribed[topic]
	f.mu.Unlock()
	if !exists {
		return
	}
	sent := frame(message, body{}.number(1, to.id).string(2, "position"))
	binary.BigEndian.PutUint32(sent, binary.BigEndian.Uint32(sent)+uint32(payload))
	_, _ = to.conn.Write(append(sent, make([]byte, payload)...)) // the reader may have closed it after the message
}

// tell sends a command to the consumer of a topic.
func (f *fakeBroker) tell(topic string, k kind) {
	f.mu.Lock()
	to := f.subscribed[topic]
	f.mu.Unlock()
	_, _ = to.conn.Write(frame(k, body{}.number(1, to.id)))
}

// disconnect ends all connections.
func (f *fakeBroker) disconnect() {
	f.set(func() {
		for conn := range f.conns {
			_ = conn.Close()
		}
		f.subscribed = map[string]consumer{}
	})
}

// of are the commands of a kind.
func (f *fakeBroker) of(k kind) (all []request) {
	f.set(func() {
		for _, one := range f.requests {
			if one.kind == k {
				all = append(all, one)
			}
		}
	})
	return all
}

func (f *fakeBroker) open() (n int) {
	f.set(func() { n = len(f.conns) })
	return n
}

// receive reads a command.
func receive(conn net.Conn) (request, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		return request{}, err
	}
	base := make([]byte, binary.BigEndian.Uint32(header[4:]))
	if _, err := io.ReadFull(conn, base); err != nil {
		return request{}, err
	}
	got := request{numbers: map[protowire.Number]uint64{}, texts: map[protowire.Number]string{}}
	return got, each(base, func(field protowire.Number, value uint64, bytes []byte) {
		if field == 1 {
			got.kind = kind(value)
			return
		}
		_ = each(bytes, func(field protowire.Number, value uint64, bytes []byte) {
			got.numbers[field], got.texts[field] = value, string(bytes)
		})
	})
}
