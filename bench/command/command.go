// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Run is a benchmark. Tables go to out; progress and help go to progress.
type Run func(ctx context.Context, args []string, out, progress io.Writer) error

// Main runs a benchmark as the whole program. The exit code of an error is 1.
func Main(name string, run Run) {
	ctx, stop := Context()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Context ends with SIGINT or SIGTERM. The second signal ends the process at once.
func Context() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// Flags returns the empty flag set of a program that prints its help to help.
func Flags(name string, help io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(help)
	return flags
}

// Parse rejects arguments that are not flags.
func Parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("argument %q is not a flag: see -help", flags.Arg(0))
	}
	return nil
}

// Pause waits for a time, and fails if ctx ends first.
func Pause(ctx context.Context, length time.Duration) error {
	if length <= 0 { // a select of both would choose by chance
		return ctx.Err()
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("waiting: %w", context.Cause(ctx))
	case <-timer.C:
		return nil
	}
}
