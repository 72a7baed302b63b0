// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/logs"
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
func run(ctx context.Context, args []string, help, lines io.Writer) error {
	options, err := ParseOptions(args, help)
	if err != nil {
		return err
	}
	handler, err := options.Log.Handler(lines)
	if err != nil {
		return err
	}
	logger := slog.New(hangUps{handler})
	logs.Bridge(logger)
	adapter, err := newAdapter(ctx, options)
	if err != nil {
		return err
	}
	logger.Info("starting", "pollInterval", options.Polling.PollInterval, "allowedPulsarHosts",
		options.Polling.PulsarHosts())
	if err := adapter.Run(ctx); err != nil {
		return err
	}
	logger.Info("stopped")
	return nil
}
