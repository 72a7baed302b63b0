// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cache"
)

const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // the exit code of shells after SIGINT
)

func main() {
	ctrl.SetLogger(logr.Discard()) // the Function Mesh of the tests would log into the table
	ctx, _ := command.Context()    // it ends with the process
	os.Exit(program(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// program returns the exit code.
func program(ctx context.Context, args []string, out, complaints io.Writer) int {
	options, err := parseOptions(args, complaints)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		output.Printf(complaints, "demo: %v\n", err)
		return exitUsage
	}
	d := newDemo(options, out, cache.IsTerminal(out))
	if options.from != "" {
		err = d.redraw()
	} else {
		_, err = d.run(ctx)
	}
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		output.Printf(complaints, "demo: interrupted, everything is stopped\n")
		return exitInterrupted
	default:
		output.Printf(complaints, "demo: %v\n", err)
		return exitFailed
	}
}
