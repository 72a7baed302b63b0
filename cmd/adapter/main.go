// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/program"
)

func main() { program.Main("adapter", run) }

// run is the whole program: it returns when the context ends, or when a part fails.
func run(ctx context.Context, args []string, help, lines io.Writer) error {
	options, err := ParseOptions(args, help)
	if err != nil {
		return err
	}
	logger := options.Log.Logger(lines, func(h slog.Handler) slog.Handler { return quiet{h} })
	program.LimitMemory(logger)
	adapter, err := newAdapter(ctx, options, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	logger.Info("starting", "pollInterval", options.Poller.PollInterval, "allowedPulsarHosts",
		options.Poller.PulsarHosts())
	if err := adapter.Run(ctx); err != nil {
		return err
	}
	logger.Info("stopped")
	return nil
}

// quiet logs expected errors of libraries at level debug: requests that the client canceled (kube-aggregator probes the
// adapter with five every 30 s and cancels all but the first to complete; metrics count failed requests in any case),
// and events that a namespace refuses because it is being deleted.
type quiet struct{ slog.Handler }

// Handle implements slog.Handler.
func (h quiet) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelError && isExpected(record) {
		record.Level = slog.LevelDebug
		if !h.Enabled(ctx, record.Level) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h quiet) WithGroup(name string) slog.Handler { return quiet{h.Handler.WithGroup(name)} }

// isExpected matches the libraries' messages.
// Source: k8s.io/apiserver, pkg/server/filters (wrap.go, timeout.go) and pkg/endpoints/handlers/responsewriters, and
// k8s.io/client-go, tools/events.
func isExpected(record slog.Record) bool {
	switch record.Message {
	case "Timeout or abort while handling", "Post-timeout activity":
		return true
	case "Unhandled Error":
		return failedWith(record, "http2: stream closed", "http: Handler timeout")
	case "Server rejected event (will not retry!)":
		return failedWith(record, "because it is being terminated")
	default:
		return false
	}
}

// failedWith reports whether the error of a record ends with one of the texts.
func failedWith(record slog.Record, ends ...string) (found bool) {
	record.Attrs(func(attr slog.Attr) bool {
		found = attr.Key == "err" && slices.ContainsFunc(ends, func(text string) bool {
			return strings.HasSuffix(attr.Value.String(), text)
		})
		return !found
	})
	return found
}
