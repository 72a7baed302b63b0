// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
)

const usage = `Compares controllers of replicas on simulated load:
a named suite, and held-out scenarios and loads that return, drawn from -seed.

  go run ./bench/sim -seed 7                                   the tables
  go run ./bench/sim -controller '^capacity$' -scenario step   some of it (the oracle always runs: it is the measure)
  go run ./bench/sim -ablate all -controller '^$'              what each part of the algorithm is worth
  go run ./bench/sim -traces dir                               episodes of recorded loads, scaled to one mean
  go run ./bench/sim -replay step.yaml -results dir -out x     what real runs measured, beside simulated ones

A trace is a CSV file with the header time,rate: RFC 3339 or seconds, and messages per second. kubectl pap simulate
--save-trace writes one of what Prometheus has, and simulates a policy on it.
It may have gaps, be compressed by gzip, and have two columns of any name:
a time, in UTC if it has no zone, and the messages until the next row.

Flags:
`

// options are the command line.
type options struct {
	seed                 uint64
	seeds, heldOut       int
	patterns             int
	repeated             bool
	controller, scenario *regexp.Regexp
	ablate               []variant
	out                  string

	plots   string
	plotted *regexp.Regexp

	traces          string
	replay, results string
}

func parseFlags(args []string, progress io.Writer) (options, error) {
	o := options{}
	var controller, scenario, ablate, plotted string
	flags := command.Flags("sim", progress)
	flags.Usage = func() {
		_, _ = io.WriteString(progress, usage)
		flags.PrintDefaults()
	}
	flags.Uint64Var(&o.seed, "seed", 1, "`number` that held-out scenarios and all luck follow from")
	flags.IntVar(&o.seeds, "seeds", 3, "`runs` of each scenario, each with luck of its own")
	flags.IntVar(&o.heldOut, "held-out", 100, "`number` of held-out scenarios")
	flags.IntVar(&o.patterns, "patterns", 3, "`number` of scenarios of each kind of loads that return")
	flags.BoolVar(&o.repeated, "repeated", false, "score loads that return from the third repetition of the first pulse "+
		"on, without what comes before")
	flags.StringVar(&controller, "controller", "", "`regexp` of the controllers to run; all when empty")
	flags.StringVar(&scenario, "scenario", "", "`regexp` of the scenarios to run; all when empty")
	flags.StringVar(&ablate, "ablate", "",
		"`parts` of the algorithm to leave out, one after the other: names with commas between, a+b for both at once, "+
			"or all; they are "+strings.Join(partNames(), ", "))
	flags.StringVar(&o.out, "out", "", "`file` for the numbers as JSON; none when empty")
	flags.StringVar(&o.plots, "plots", "", "`directory` for an HTML page with charts of each scenario, of held-out ones "+
		"only with -scenario; none when empty")
	flags.StringVar(&plotted, "plot", "^(oracle|keda-default10|simple|capacity)$", "`regexp` of the controllers in plots")
	flags.StringVar(&o.traces, "traces", "", "`directory` of recorded loads, of which episodes of 6 h run in place of "+
		"the scenarios, with start times and objectives of their own")
	flags.StringVar(&o.replay, "replay", "", "`files` of scenarios that ran on real parts, with spaces between them: "+
		"their contenders are simulated 30 times, in place of all else")
	flags.StringVar(&o.results, "results", "", "`directory` with a result of each scenario of -replay: "+
		"kubectl pap bench run -f STEP.yaml --local -o json > DIRECTORY/STEP.json")
	if err := command.Parse(flags, args); err != nil {
		return o, err
	}
	for name, pattern := range map[string]struct {
		text string
		to   **regexp.Regexp
	}{"controller": {controller, &o.controller}, "scenario": {scenario, &o.scenario}, "plot": {plotted, &o.plotted}} {
		compiled, err := regexp.Compile(pattern.text)
		if err != nil {
			return o, fmt.Errorf("-%s: %w", name, err)
		}
		*pattern.to = compiled
	}
	var err error
	if o.ablate, err = parseVariants(ablate); err != nil {
		return o, fmt.Errorf("-ablate: %w", err)
	}
	return o, o.check()
}

// check validates the numbers.
func (o options) check() error {
	if o.seeds < 1 || o.heldOut < 0 {
		return fmt.Errorf("-seeds is %d and -held-out %d: they must be at least 1 and 0", o.seeds, o.heldOut)
	}
	if o.replay != "" && (o.results == "" || o.out == "") {
		return errors.New("-results or -out is empty: -replay needs the directory with the results, and where to write")
	}
	return nil
}
