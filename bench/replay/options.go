// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

// options are the command line.
type options struct {
	scenario *regexp.Regexp
	// seconds is the length of each scenario; 0 is its own length.
	seconds int
	// out is the file of the numbers, plots the directory of the pages and again an earlier out; each may be empty.
	out, plots, again string
}

// leastSeconds covers a poll and a sync of the HPA controller.
const leastSeconds = 20

func parseOptions(args []string, help io.Writer) (options, error) {
	var o options
	var scenario string
	flags := command.Flags("replay", help)
	flags.StringVar(&scenario, "scenario", "", "regular expression of the scenarios to run; all when empty")
	flags.IntVar(&o.seconds, "seconds", 0,
		"length to scale each scenario to; 0 for its own length")
	flags.StringVar(&o.out, "out", "", "file for the numbers as JSON; none when empty")
	flags.StringVar(&o.plots, "plots", "", "directory for an HTML page of each scenario; none when empty")
	flags.StringVar(&o.again, "again", "",
		"file of an earlier -out: run nothing, and repeat its simulations")
	if err := command.Parse(flags, args); err != nil {
		return options{}, err
	}
	if o.seconds != 0 && (o.seconds < leastSeconds || o.seconds > longest) {
		return options{}, fmt.Errorf("-seconds is %d: it must be 0, or from %d to %d", o.seconds, leastSeconds, longest)
	}
	var err error
	if o.scenario, err = regexp.Compile(scenario); err != nil {
		return options{}, fmt.Errorf("-scenario: %w", err)
	}
	return o, nil
}

// scenarios returns the selected scenarios at the selected length.
func (o options) scenarios() []scenario {
	var some []scenario
	for _, s := range all() {
		if !o.scenario.MatchString(s.name) {
			continue
		}
		if o.seconds > 0 {
			s = s.lasting(time.Duration(o.seconds) * time.Second)
		}
		some = append(some, s)
	}
	return some
}

// covers reports whether to measure the busy time of a Java instance for calls of several lengths. A shortened run is
// not a measurement.
func (o options) covers() bool { return o.seconds == 0 && o.scenario.MatchString(coverageName) }

// write writes the requested files.
func (o options) write(r report) error {
	if o.out != "" {
		text, err := r.encode()
		if err != nil {
			return err
		}
		if err := output.File(o.out, text); err != nil {
			return err
		}
	}
	if o.plots == "" {
		return nil
	}
	for _, one := range r.Scenarios {
		if err := one.page().File(filepath.Join(o.plots, "replay-"+one.Name+".html")); err != nil {
			return err
		}
	}
	return nil
}
