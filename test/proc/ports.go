// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Free ports are below the range that Linux (32768) and darwin (49152) use for outgoing connections: a client may take
// a port from that range before a server listens on it.
const (
	portFirst = 15000
	portCount = 17000
	portTries = 500
)

// FreePort finds a TCP port without a listener at 127.0.0.1, as FreePorts does.
func FreePort() (int, error) {
	ports, err := FreePorts(1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

// FreePorts finds n distinct TCP ports without listeners at 127.0.0.1. They are not reserved, but no process of the
// user finds them again here before all others of the range: a broker takes ten seconds until it listens, and other
// processes find hundreds of ports meanwhile.
func FreePorts(n int) (ports []int, err error) {
	turn, err := takeTurn()
	if err != nil {
		return nil, fmt.Errorf("finding %d free ports: %w", n, err)
	}
	defer func() { err = errors.Join(err, turn.end()) }()
	var last error
	for tries := 0; len(ports) < n; tries++ {
		if tries == n+portTries {
			return nil, fmt.Errorf("finding %d free ports on 127.0.0.1: only %d of %d tries worked: %w", n, len(ports), tries,
				last)
		}
		port := turn.next()
		if last = tryPort(port); last == nil {
			ports = append(ports, port)
		}
	}
	return ports, nil
}

func tryPort(port int) error {
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}

// turn is the permission to find ports, which one caller of all processes has at a time, with the position of the last
// one.
type turn struct {
	file *os.File
	at   int
}

// takeTurn waits for other callers, each of which takes milliseconds.
func takeTurn() (*turn, error) {
	// The same file for all processes, also where a test changes TMPDIR.
	path := fmt.Sprintf("/tmp/pulsar-autoscaler-ports-%d", os.Getuid())
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
	}
	text, err := io.ReadAll(io.LimitReader(file, 16))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", path, err), file.Close())
	}
	at, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || at < 0 || at >= portCount { // the first caller
		at = rand.IntN(portCount)
	}
	return &turn{file: file, at: at}, nil
}

func (t *turn) next() int {
	port := portFirst + t.at
	t.at = (t.at + 1) % portCount
	return port
}

// end records the position for the next caller.
func (t *turn) end() error {
	_, err := t.file.WriteAt([]byte(fmt.Sprintf("%-8d", t.at)), 0)
	return errors.Join(err, t.file.Close()) // which unlocks it
}
