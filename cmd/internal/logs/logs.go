// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/flags"
)

// Options are the flags of the log.
type Options struct {
	Level, Format string
}

// NewOptions returns the defaults.
func NewOptions() Options { return Options{Level: "info", Format: "json"} }

func levels() []string { return []string{"debug", "info", "warn", "error"} }

func formats() []string { return []string{"json", "text"} }

// AddFlags adds --log-level and --log-format.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Level, "log-level", o.Level, "Least severity that is logged: "+strings.Join(levels(), ", ")+".")
	fs.StringVar(&o.Format, "log-format", o.Format, "Form of log lines: "+strings.Join(formats(), ", ")+".")
}

// Check returns what is wrong with the flags.
func (o *Options) Check() []error {
	var p flags.Problems
	p.OneOf("log-level", o.Level, levels()...)
	p.OneOf("log-format", o.Format, formats()...)
	return p
}

// Handler writes log lines as the options say.
func (o *Options) Handler(out io.Writer) (slog.Handler, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.Level)); err != nil {
		return nil, fmt.Errorf("--log-level is %q: %w", o.Level, err)
	}
	options := &slog.HandlerOptions{Level: level}
	if o.Format == "text" {
		return slog.NewTextHandler(out, options), nil
	}
	return slog.NewJSONHandler(out, options), nil
}

// Bridge sends the log lines of klog and controller-runtime to the log of the process. Both keep it in a package
// variable, so only main calls it, once.
func Bridge(logger *slog.Logger) {
	klog.SetSlogLogger(logger)
	ctrl.SetLogger(logr.FromSlogHandler(logger.Handler()))
}
