// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
)

// Main runs the program with a context that ends at SIGINT or SIGTERM, and exits with 1 when it fails.
func Main(name string, run func(ctx context.Context, args []string, help, lines io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, pflag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// Parts are the parts of a program.
type Parts struct {
	// Serve serves requests until its context ends.
	Serve func(context.Context) error
	// Drain is called when the program has to end, and its context ends with any part; Serve is stopped when it returns.
	Drain func(context.Context)
	// Background are the parts that requests depend on: they end after Serve. A stopped cache would serve older decisions
	// than another replica has made since.
	Background []func(context.Context) error
}

// Run runs all parts until the context ends or one of them fails.
func Run(ctx context.Context, parts Parts) error {
	lifetime, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	group, running := errgroup.WithContext(lifetime)
	serving, stopServing := context.WithCancel(running)
	defer stopServing()
	defer context.AfterFunc(ctx, func() {
		parts.Drain(running)
		stopServing()
	})()
	for _, part := range parts.Background {
		group.Go(func() error { return part(running) })
	}
	group.Go(func() error {
		defer end()
		return parts.Serve(serving)
	})
	return group.Wait()
}

// LimitMemory keeps the garbage collector below nine tenths of the container's memory limit, unless GOMEMLIMIT is set:
// by default the heap doubles before a collection, and the kernel kills the process first.
func LimitMemory(logger *slog.Logger) {
	limit, err := memlimit.Set()
	if err != nil {
		logger.Warn("the container's memory limit is unknown: set GOMEMLIMIT if it has one", "error", err)
		return
	}
	logger.Info("memory is limited", "gomemlimit", limit)
}

// BuildInfo is a metric with the version.
func BuildInfo() prometheus.Collector {
	var version, revision string
	if info, found := debug.ReadBuildInfo(); found {
		version = info.Main.Version
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	const unknown = "unknown"
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pulsar_autoscaler_build_info", Help: "Version and build of the program. Always 1.",
		ConstLabels: prometheus.Labels{
			"version": cmp.Or(version, unknown), "revision": cmp.Or(revision, unknown), "go_version": runtime.Version(),
		},
	}, func() float64 { return 1 })
}
