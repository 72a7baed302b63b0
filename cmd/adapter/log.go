// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func logLevels() []string { return []string{"debug", "info", "warn", "error"} }

func logFormats() []string { return []string{"json", "text"} }

// newLogger returns the log of the process, as the options say.
func newLogger(o *Options, out io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.LogLevel)); err != nil {
		return nil, fmt.Errorf("--log-level is %q: %w", o.LogLevel, err)
	}
	handlerOptions := &slog.HandlerOptions{Level: level}
	if o.LogFormat == "text" {
		return slog.New(hangUps{slog.NewTextHandler(out, handlerOptions)}), nil
	}
	return slog.New(hangUps{slog.NewJSONHandler(out, handlerOptions)}), nil
}

// bridgeLogs sends what the libraries log, through klog and controller-runtime, to the log of the process. Both keep it
// in a variable of theirs, so it is called once, by main.
func bridgeLogs(logger *slog.Logger) {
	klog.SetSlogLogger(logger)
	ctrl.SetLogger(logr.FromSlogHandler(logger.Handler()))
}
