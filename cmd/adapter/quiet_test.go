// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCanceledRequestsAreNoErrors(t *testing.T) {
	tests := map[string]struct {
		message string
		err     error
		shown   bool
	}{
		"a request that was given up": {"Timeout or abort while handling", nil, false},
		"the rest of it":              {"Post-timeout activity", nil, false},
		"a response to a canceled request": {
			"Unhandled Error",
			errors.New("apiserver was unable to write a application/json response: http2: stream closed"), false,
		},
		"a response after the end": {
			"Unhandled Error",
			errors.New("apiserver was unable to write a fallback application/json response: http: Handler timeout"), false,
		},
		"an event in a namespace that is being deleted": {
			"Server rejected event (will not retry!)",
			errors.New(`events.events.k8s.io "resize.1" is forbidden: unable to create new content in namespace media ` +
				`because it is being terminated`), false,
		},
		"an event that may not be written": {
			"Server rejected event (will not retry!)",
			errors.New(`events.events.k8s.io is forbidden: User "adapter" cannot create resource "events"`), true,
		},
		"another error of the library": {
			"Unhandled Error", errors.New("verifying a token: etcd is away"),
			true,
		},
		"an error of our own with words of the kind": {"reading Functions", errors.New("http2: stream closed"), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			logger := slog.New(quiet{slog.NewTextHandler(&out, nil)}).With("logger", "UnhandledError")
			logger.Error(tt.message, "err", tt.err)
			require.Equal(t, tt.shown, out.Len() > 0, out.String())

			out.Reset()
			logger = slog.New(quiet{slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})})
			logger.Error(tt.message, "err", tt.err)
			level := "level=DEBUG"
			if tt.shown {
				level = "level=ERROR"
			}
			require.Contains(t, out.String(), level)
		})
	}
}
