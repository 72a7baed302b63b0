// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/jdk"
)

// options are the command line.
type options struct {
	// keep continues after the summary, until Ctrl-C.
	keep bool
	// short is a run of about a minute.
	short bool
	// out is the directory of summary.json, demo.png and demo.html.
	out string
}

func parseOptions(args []string, help io.Writer) (options, error) {
	var o options
	flags := command.Flags("demo", help)
	flags.BoolVar(&o.keep, "keep", false, "after the summary leave everything running until Ctrl-C")
	flags.BoolVar(&o.short, "short-run", false, "less load for a shorter time: about a minute")
	flags.StringVar(&o.out, "out", filepath.Join("bench", "out", "demo"),
		"`directory` of summary.json, demo.png and demo.html")
	if err := command.Parse(flags, args); err != nil {
		return options{}, err
	}
	if o.out == "" {
		return options{}, errors.New("-out is empty: it must name a directory")
	}
	return o, nil
}

// needed checks the requirements; every error names what to install.
func needed() []func() error {
	return []func() error{
		func() error {
			if _, err := exec.LookPath("go"); err != nil {
				return fmt.Errorf("no Go found: install Go 1.26 or newer from https://go.dev/dl and put it into PATH: %w", err)
			}
			return nil
		},
		func() error { _, err := jdk.Find(); return err },
		func() error { _, err := jdk.Maven(); return err },
		func() error { return knownPulsar(os.Getenv(broker.VersionVariable)) },
	}
}

func knownPulsar(version string) error {
	if version == "" || slices.Contains(broker.Versions(), version) {
		return nil
	}
	return fmt.Errorf("%w %q: $%s must be one of %s", broker.ErrVersion, version, broker.VersionVariable,
		strings.Join(broker.Versions(), ", "))
}

// check returns one error with everything that is missing.
func check(needs []func() error) error {
	var missing []string
	for _, need := range needs {
		if err := need(); err != nil {
			missing = append(missing, "  - "+err.Error())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", errMissing, strings.Join(missing, "\n"))
}

var errMissing = errors.New("this machine does not meet the requirements of the demo")
