// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Free ports come from below the range that Linux (32768) and darwin (49152) give to outgoing connections: a port from
// that range may be taken by any client between being found free and being listened on.
const (
	portFirst = 15000
	portCount = 17000
	portTries = 500
)

// FreePort finds a TCP port that nobody listens on at 127.0.0.1. It is free now; nothing keeps it so.
func FreePort() (int, error) {
	ports, err := FreePorts(1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

// FreePorts finds n distinct TCP ports that nobody listens on at 127.0.0.1. They are free now; nothing keeps them so.
func FreePorts(n int) ([]int, error) {
	if n < 1 {
		return nil, fmt.Errorf("finding %d free ports: the number must be 1 or more", n)
	}
	ports, last := make([]int, 0, n), error(nil)
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	var config net.ListenConfig
	for tries := 0; len(ports) < n; tries++ {
		if tries == n+portTries {
			return nil, fmt.Errorf("finding %d free ports on 127.0.0.1: only %d of %d tries worked: %w", n, len(ports), tries, last)
		}
		port := portFirst + rand.IntN(portCount)
		l, err := config.Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		held, ports = append(held, l), append(ports, port)
	}
	return ports, nil
}
