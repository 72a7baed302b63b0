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
	// seconds of each scenario; 0 for as long as each is meant to be.
	seconds int
	// out is the file of the numbers, plots the directory of the images and again an earlier out; each may be empty.
	out, plots, again string
}

// leastSeconds is enough for a poll and a sync of the HPA controller.
const leastSeconds = 20

func parseOptions(args []string, help io.Writer) (options, error) {
	var o options
	var scenario string
	flags := command.Flags("replay", help)
	flags.StringVar(&scenario, "scenario", "", "regular expression of the scenarios to run; all when empty")
	flags.IntVar(&o.seconds, "seconds", 0,
		"length of each scenario: its load is squeezed into it; 0 for as long as each is meant to be")
	flags.StringVar(&o.out, "out", "", "file for the numbers as JSON; none when empty")
	flags.StringVar(&o.plots, "plots", "", "directory for an image of each scenario; none when empty")
	flags.StringVar(&o.again, "again", "",
		"file of an earlier -out: nothing is run, and what was measured then is simulated anew")
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

// scenarios that were asked for, at the length that was asked for.
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

// covers says whether the busy time of a Java instance is to be measured for calls of several lengths. A squeezed run
// is no measurement.
func (o options) covers() bool { return o.seconds == 0 && o.scenario.MatchString(coverageName) }

// write makes the files that were asked for.
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
		image, err := render(one)
		if err != nil {
			return err
		}
		if err := output.File(filepath.Join(o.plots, "replay-"+one.Name+".png"), image); err != nil {
			return err
		}
	}
	return nil
}
