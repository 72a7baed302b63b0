// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)   // the second signal ends the process at once
	ctrl.SetLogger(logr.Discard()) // log lines of the cluster clients do not help a user
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := newRoot(streams)
	root.SetArgs(arguments(os.Args))
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(exitCode(err))
	}
}

// completer is the name by which kubectl calls a program that completes the arguments of kubectl pap.
const completer = "kubectl_complete-pap"

// arguments are those of a command line. A link with the name of the completer completes them.
func arguments(commandLine []string) []string {
	args := commandLine[1:]
	if filepath.Base(commandLine[0]) == completer {
		return append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return args
}

// exitCode is 1, unless the error has its own.
func exitCode(err error) int {
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return 1
}
