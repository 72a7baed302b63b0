// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Bounds of the requests for metrics and probes.
const (
	requestTimeout = 5 * time.Second
	maxHeaderBytes = 16 << 10
)

// handler serves /metrics; /healthz, which fails when the process is stuck; and /readyz, which fails before it can
// serve KEDA and while it ends.
func handler(metrics prometheus.Gatherer, alive, ready func() error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	mux.HandleFunc("GET /healthz", probe(alive))
	mux.HandleFunc("GET /readyz", probe(ready))
	return mux
}

func probe(check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n")) // the client may be gone
	}
}

// serveHTTP serves until the context ends. It then cuts off open requests: none of them changes anything.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: maxHeaderBytes,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics and probes: %w", err)
	}
	return nil
}
