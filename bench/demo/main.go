// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as a shell says of a command that SIGINT ended
)

func main() {
	ctrl.SetLogger(logr.Discard()) // the stand-in for Function Mesh would complain on the table otherwise
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process, and the kernel its children
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code.
func run(ctx context.Context, args []string, out, complaints io.Writer) int {
	options, err := parseOptions(args, complaints)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		say(complaints, "demo: %v\n", err)
		return exitUsage
	}
	_, err = newDemo(options, out, isTerminal(out)).run(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		say(complaints, "demo: interrupted, everything is stopped\n")
		return exitInterrupted
	default:
		say(complaints, "demo: %v\n", err)
		return exitFailed
	}
}

// isTerminal says whether somebody watches lines being rewritten.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// say writes for a person; a reader that has gone is no reason to leave processes behind.
func say(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, args...)
}
