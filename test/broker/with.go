// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"fmt"
	"os"
)

// With runs body with a broker of its own and returns body's exit code, or 1 with the reason on stderr when the broker
// does not start: for the TestMain of a package whose tests share one.
func With(config Config, body func(*Broker) int) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b, err := Start(ctx, config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = b.Discard() }() // nothing is left to lose
	return body(b)
}
