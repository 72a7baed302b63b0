// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

func main() {
	ctrl.SetLogger(logr.Discard()) // the Function Mesh of the tests would log into the table
	command.Main("replay", run)
}

// run writes its results after every scenario, so that an interruption loses only one.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parseOptions(args, progress)
	if err != nil {
		return err
	}
	if o.again != "" {
		return again(o, out)
	}
	scenarios := o.scenarios()
	if len(scenarios) == 0 && !o.covers() {
		return fmt.Errorf("-scenario %s names none: they are %v", o.scenario, append(names(all()), coverageName))
	}
	env, end, err := open(ctx, progress)
	if err != nil {
		return err
	}
	defer end()
	written := env.report()
	if o.covers() {
		output.Printf(progress, "%s: a minute and a half of real time ...\n", coverageName)
		if written.Coverage, err = env.cover(ctx); err != nil {
			return fmt.Errorf("measuring the coverage: %w", err)
		}
		if err := o.write(written); err != nil {
			return err
		}
	}
	for _, s := range scenarios {
		output.Printf(progress, "%s: %s of real time ...\n", s.name, s.length)
		happened, err := env.play(ctx, s)
		if err != nil {
			return fmt.Errorf("running %s: %w", s.name, err)
		}
		measured := happened.measure()
		result := compare(s, measured, happened.score(), happened.trace(), simulate(s, measured, happened.arrived()))
		result.Decisions = decisions(happened.looks)
		written.Scenarios = append(written.Scenarios, result)
		if err := o.write(written); err != nil {
			return err
		}
	}
	return written.table(out)
}

// again repeats the simulations of an earlier report, with its measurements.
func again(o options, out io.Writer) error {
	text, err := os.ReadFile(o.again)
	if err != nil {
		return fmt.Errorf("reading an earlier report: %w", err)
	}
	before, err := decode(text)
	if err != nil {
		return err
	}
	written := before
	written.Scenarios = nil
	for _, r := range before.Scenarios {
		s, ok := find(r.Name)
		if !ok || !o.scenario.MatchString(r.Name) {
			continue
		}
		s = s.lasting(r.length())
		if r.ObjectiveSeconds > 0 {
			s.objective = time.Duration(r.ObjectiveSeconds * float64(time.Second))
		}
		arrived := r.Trace.Arrived
		if len(arrived) == 0 {
			arrived = r.Trace.Rate // the planned load, in a report without counts
		}
		result := compare(s, r.Measured, r.Real, r.Trace.real(), simulate(s, r.Measured, arrived))
		result.Decisions = r.Decisions
		written.Scenarios = append(written.Scenarios, result)
	}
	if err := o.write(written); err != nil {
		return err
	}
	return written.table(out)
}
