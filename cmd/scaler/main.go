// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/program"
)

func main() { program.Main("scaler", run) }

// run is the whole program: it returns when the context ends, or when a part fails.
func run(ctx context.Context, args []string, help, lines io.Writer) error {
	options, err := ParseOptions(args, help)
	if err != nil {
		return err
	}
	logger := options.Log.Logger(lines, func(h slog.Handler) slog.Handler { return h })
	program.LimitMemory(logger)
	scaler, err := newScaler(ctx, options, logger, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	isSelf := scaler.certificate != nil
	logger.Info("starting", "grpc", scaler.grpc.Addr().String(), "http", scaler.http.Addr().String(),
		"tls", isSelf || options.TLS.Certificate != "", "clientCertificates", isSelf || options.TLS.ClientCA != "",
		"pollInterval", options.Poller.PollInterval, "allowedPulsarHosts", options.Poller.PulsarHosts())
	if err := scaler.Run(ctx); err != nil {
		return err
	}
	logger.Info("stopped")
	return nil
}
