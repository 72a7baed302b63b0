// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, pflag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "adapter:", err)
		os.Exit(1)
	}
}

// run is the whole program: it returns when the context ends, or when a part cannot go on.
func run(ctx context.Context, args []string, help, logs io.Writer) error {
	options, err := ParseOptions(args, help)
	if err != nil {
		return err
	}
	logger, err := newLogger(options, logs)
	if err != nil {
		return err
	}
	bridgeLogs(logger)
	adapter, err := newAdapter(ctx, options)
	if err != nil {
		return err
	}
	logger.Info("starting", "pollInterval", options.PollInterval, "allowedPulsarHosts", options.PulsarHosts())
	if err := adapter.Run(ctx); err != nil {
		return err
	}
	logger.Info("stopped")
	return nil
}
