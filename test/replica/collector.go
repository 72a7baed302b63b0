// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// collector receives the reports of functions of Java replicas, over one connection each. The first line is the token
// of the replica; reports with another one are discarded.
type collector struct {
	listener net.Listener
	running  sync.WaitGroup

	mu       sync.Mutex // guards expected and conns
	expected map[string]func() (report func(Completion))
	conns    map[net.Conn]struct{}
}

func newCollector(ctx context.Context) (*collector, error) {
	listener, err := listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("listening for the reports of functions: %w", err)
	}
	c := &collector{
		listener: listener,
		expected: map[string]func() func(Completion){},
		conns:    map[net.Conn]struct{}{},
	}
	c.running.Go(c.accept)
	return c, nil
}

func (c *collector) addr() string { return c.listener.Addr().String() }

// expect calls connected once the function with that token has connected, and then report for every message.
func (c *collector) expect(token string, connected func() (report func(Completion))) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected[token] = connected
}

func (c *collector) forget(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.expected, token)
}

// close ends all connections and waits for the last report.
func (c *collector) close() error {
	err := c.listener.Close()
	c.mu.Lock()
	for conn := range c.conns {
		_ = conn.Close() // the reader closes it too
	}
	c.mu.Unlock()
	c.running.Wait()
	return err
}

func (c *collector) accept() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.mu.Lock()
		c.conns[conn] = struct{}{}
		c.mu.Unlock()
		c.running.Go(func() {
			c.read(conn)
			c.mu.Lock()
			delete(c.conns, conn)
			c.mu.Unlock()
			_ = conn.Close() // nothing is left to write
		})
	}
}

// read reads the reports of one function until its process ends.
func (c *collector) read(conn net.Conn) {
	lines := bufio.NewScanner(conn)
	if !lines.Scan() {
		return
	}
	c.mu.Lock()
	connected := c.expected[lines.Text()]
	c.mu.Unlock()
	report := func(Completion) {}
	if connected != nil {
		report = connected()
	}
	for lines.Scan() {
		done, err := parse(lines.Text())
		if err != nil {
			return // the process was killed within a line
		}
		report(done)
	}
}

// parse reads a line of a function: "<published, epoch ms> <done, epoch ms> <took, µs> <sequence>".
func parse(line string) (Completion, error) {
	fields := strings.Split(line, " ")
	if len(fields) != 4 {
		return Completion{}, fmt.Errorf("reading the report %q: it has %d fields instead of 4", line, len(fields))
	}
	published, publishedErr := strconv.ParseInt(fields[0], 10, 64)
	done, doneErr := strconv.ParseInt(fields[1], 10, 64)
	took, tookErr := strconv.ParseInt(fields[2], 10, 32)
	sequence, sequenceErr := strconv.ParseUint(fields[3], 10, 64)
	if err := errors.Join(publishedErr, doneErr, tookErr, sequenceErr); err != nil {
		return Completion{}, fmt.Errorf("reading the report %q: %w", line, err)
	}
	return Completion{
		Published: time.UnixMilli(published), Done: time.UnixMilli(done),
		Took: time.Duration(took) * time.Microsecond, Sequence: sequence,
	}, nil
}

// DiscardReports listens until ctx ends and discards the reports of functions.
func DiscardReports(ctx context.Context) (address string, err error) {
	c, err := newCollector(ctx)
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = c.close() }) // no reports are left to wait for
	return c.addr(), nil
}
