// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"io"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/flags"
)

// LogOptions are the flags of the log.
type LogOptions struct {
	Level, Format string
}

// NewLogOptions returns the defaults.
func NewLogOptions() LogOptions { return LogOptions{Level: "info", Format: "json"} }

func levels() []string { return []string{"debug", "info", "warn", "error"} }

func formats() []string { return []string{"json", "text"} }

// AddFlags adds --log-level and --log-format.
func (o *LogOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Level, "log-level", o.Level, "Least severity that is logged: "+strings.Join(levels(), ", ")+".")
	fs.StringVar(&o.Format, "log-format", o.Format, "Form of log lines: "+strings.Join(formats(), ", ")+".")
}

// Check returns what is wrong with the flags.
func (o *LogOptions) Check() []error {
	var p flags.Problems
	p.OneOf("log-level", o.Level, levels()...)
	p.OneOf("log-format", o.Format, formats()...)
	return p
}

// Logger is the log of the process, through wrap, also for klog and controller-runtime. Both keep it in a package
// variable, so that only main calls this, once.
func (o *LogOptions) Logger(out io.Writer, wrap func(slog.Handler) slog.Handler) *slog.Logger {
	logger := slog.New(wrap(o.handler(out)))
	klog.SetSlogLogger(logger)
	ctrl.SetLogger(logr.FromSlogHandler(logger.Handler()))
	return logger
}

func (o *LogOptions) handler(out io.Writer) slog.Handler {
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.Level)) // Check allows its levels only
	options := &slog.HandlerOptions{Level: level}
	if o.Format == "text" {
		return slog.NewTextHandler(out, options)
	}
	return slog.NewJSONHandler(out, options)
}
