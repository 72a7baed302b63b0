// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/flags"
)

func newRoot(streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-pap",
		Short: "See, check and try out autoscaling policies of Pulsar Functions, and move over to them",
		Long: "See what autoscaling policies of Pulsar Functions do (AutoscalingPolicy, short name pap), check them, try " +
			"them out before they scale anything, and move over to them from other autoscalers.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl pap"},
		SilenceErrors: true, // main prints them
		SilenceUsage:  true,
	}
	if info, found := debug.ReadBuildInfo(); found {
		root.Version = flags.Version(info)
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.AddCommand(newTop(streams), newExplain(streams), newCheck(streams), newMigrate(streams), newSimulate(streams),
		newPlan(streams), newReport(streams), newBench(streams))
	return root
}

func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// confirmed asks a question: y and yes agree. The end of the input does not, and ends the line.
func confirmed(in *bufio.Reader, out io.Writer, question string) (bool, error) {
	if _, err := io.WriteString(out, output.Wrap(question+" [y/N]", "", "  ", textWidth(out))+" "); err != nil {
		return false, err
	}
	answer, err := in.ReadString('\n')
	switch {
	case errors.Is(err, io.EOF):
		_, _ = io.WriteString(out, "\n")
	case err != nil:
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

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
	var c coded
	if errors.As(err, &c) {
		return c.code
	}
	return 1
}
