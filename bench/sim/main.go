// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/suite"
)

func main() {
	command.Main("sim", run)
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parseFlags(args, progress)
	if err != nil {
		return err
	}
	if o.replay != "" {
		return replay(ctx, o)
	}
	if o.traces != "" {
		return runTraces(ctx, o, out)
	}
	measured := report{seed: o.seed, seeds: o.seeds}
	for _, one := range o.sets() {
		if len(one.scenarios) == 0 {
			continue
		}
		runs, err := one.run(ctx, contestants(o), o)
		if err != nil {
			return err
		}
		measured.sets = append(measured.sets, summarize(one, runs, o.seed))
		if err := plotSet(one, runs, o); err != nil {
			return err
		}
	}
	if len(measured.sets) == 0 {
		return fmt.Errorf("-scenario %q is the name of none: all are run without it", o.scenario)
	}
	if err := measured.writeTables(out); err != nil {
		return err
	}
	for _, s := range measured.sets {
		if worths := s.worths(o.ablate, o.seed); len(worths) > 0 {
			title := s.name + ": " + capacityName + " without a part compared with all of it, per scenario (more is worse)"
			if err := output.Table(out, title, worthRows(worths)); err != nil {
				return err
			}
		}
	}
	return output.JSON(o.out, measured.written())
}

// sets of scenarios that the options select.
func (o options) sets() []set {
	patterns := func(family string) set {
		return set{name: family, scenarios: o.scored(matching(suite.Patterns(family, o.seed, o.patterns), o.scenario))}
	}
	return []set{
		{name: suiteName, scenarios: matching(suite.Named(), o.scenario)},
		{name: heldOutName, scenarios: matching(suite.HeldOut(o.seed, o.heldOut), o.scenario)},
		patterns(suite.Regular), patterns(suite.Adversarial),
		{name: suite.Pipelines, scenarios: o.pipelines()},
	}
}

// scored scenarios count from where the options say.
func (o options) scored(all []suite.Scenario) []suite.Scenario {
	for i := range all {
		if o.repeated {
			all[i].ScoredFrom = all[i].Repeated
		}
	}
	return all
}
