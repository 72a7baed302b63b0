// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/browser"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	path, err := browser.Find(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "path:", err)
		os.Exit(1) //nolint:gocritic // the process ends here
	}
	_, _ = fmt.Fprintln(os.Stdout, path)
}
