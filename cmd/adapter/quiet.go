// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
)

// hangUps logs at level debug the errors of the API server library about requests that the client canceled.
// kube-aggregator probes the adapter with five requests every 30 s and cancels all but the first to answer, which is 15
// such lines for an idle adapter. The library's metrics count failed requests in any case.
type hangUps struct{ slog.Handler }

// Handle implements slog.Handler.
func (h hangUps) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelError && isHangUp(record) {
		record.Level = slog.LevelDebug
		if !h.Enabled(ctx, record.Level) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h hangUps) WithAttrs(attrs []slog.Attr) slog.Handler {
	return hangUps{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h hangUps) WithGroup(name string) slog.Handler { return hangUps{h.Handler.WithGroup(name)} }

// isHangUp matches the library's messages.
//
// Source: k8s.io/apiserver, pkg/server/filters (wrap.go, timeout.go) and pkg/endpoints/handlers/responsewriters.
func isHangUp(record slog.Record) bool {
	switch record.Message {
	case "Timeout or abort while handling", "Post-timeout activity":
		return true
	case "Unhandled Error":
		found := false
		record.Attrs(func(attr slog.Attr) bool {
			found = attr.Key == "err" &&
				slices.ContainsFunc([]string{"http2: stream closed", "http: Handler timeout"}, func(words string) bool {
					return strings.HasSuffix(attr.Value.String(), words)
				})
			return !found
		})
		return found
	default:
		return false
	}
}
