// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"path/filepath"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
)

// options are the command line.
type options struct {
	// keep continues after the result, until Ctrl-C.
	keep bool
	// short is a run of about a minute for the tests, with less load on consumers instead of Java instances.
	short bool
	// out is the directory of result.json and demo.html.
	out string
	// from is a result.json to draw again, instead of a run; empty for a run.
	from string
}

func parseOptions(args []string, help io.Writer) (options, error) {
	var o options
	flags := command.Flags("demo", help)
	flags.BoolVar(&o.keep, "keep", false, "after the result leave everything running until Ctrl-C")
	flags.StringVar(&o.out, "out", filepath.Join("bench", "out", "demo"),
		"`directory` of result.json and demo.html")
	flags.StringVar(&o.from, "from", "", "`result.json` of an earlier run: only draw its demo.html again")
	if err := command.Parse(flags, args); err != nil {
		return options{}, err
	}
	if o.out == "" {
		return options{}, errors.New("-out is empty: it must name a directory")
	}
	return o, nil
}
