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
)

const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as a shell says of a command that SIGINT ended
)

func main() {
	ctrl.SetLogger(logr.Discard()) // the stand-in for Function Mesh would complain on the table otherwise
	ctx, _ := command.Context()    // the process ends with it
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code.
func run(ctx context.Context, args []string, out, complaints io.Writer) int {
	options, err := parseOptions(args, complaints)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		output.Printf(complaints, "demo: %v\n", err)
		return exitUsage
	}
	_, err = newDemo(options, out, isTerminal(out)).run(ctx)
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

// isTerminal says whether lines can be rewritten.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
