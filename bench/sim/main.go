// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/peer"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/plant"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/suite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1)
	}
}

type options struct {
	seed                 uint64
	seeds, heldOut       int
	controller, scenario *regexp.Regexp
	path                 string
}

func parseFlags(args []string, progress io.Writer) (options, error) {
	o := options{}
	var controller, scenario string
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.Uint64Var(&o.seed, "seed", 1, "of the held-out scenarios and of all luck")
	flags.IntVar(&o.seeds, "seeds", 3, "runs of each scenario, each with luck of its own")
	flags.IntVar(&o.heldOut, "held-out", 100, "number of held-out scenarios")
	flags.StringVar(&controller, "controller", "", "regular expression of the controllers to run; all when empty")
	flags.StringVar(&scenario, "scenario", "", "regular expression of the scenarios to run; all when empty")
	flags.StringVar(&o.path, "out", "", "file for the numbers as JSON; none when empty")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.seeds < 1 || o.heldOut < 0 {
		return o, fmt.Errorf("-seeds is %d and -held-out %d: they must be at least 1 and 0", o.seeds, o.heldOut)
	}
	var err error
	if o.controller, err = regexp.Compile(controller); err != nil {
		return o, fmt.Errorf("-controller: %w", err)
	}
	if o.scenario, err = regexp.Compile(scenario); err != nil {
		return o, fmt.Errorf("-scenario: %w", err)
	}
	return o, nil
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parseFlags(args, progress)
	if err != nil {
		return err
	}
	sets := []set{
		{name: "suite", scenarios: matching(suite.Named(), o.scenario)},
		{name: "held-out", scenarios: matching(suite.HeldOut(o.seed, o.heldOut), o.scenario)},
	}
	written := report{Seed: o.seed, Seeds: o.seeds}
	for _, one := range sets {
		if len(one.scenarios) == 0 {
			continue
		}
		runs, err := one.run(ctx, o)
		if err != nil {
			return err
		}
		written.Sets = append(written.Sets, summarize(one, runs, o.seed))
	}
	if err := written.writeTables(out); err != nil {
		return err
	}
	return written.writeJSON(o.path)
}

func matching(all []suite.Scenario, pattern *regexp.Regexp) []suite.Scenario {
	var some []suite.Scenario
	for _, s := range all {
		if pattern.MatchString(s.Name) {
			some = append(some, s)
		}
	}
	return some
}

// set is scenarios that are scored together.
type set struct {
	name      string
	scenarios []suite.Scenario
}

// outcome is one run of one controller on one scenario.
type outcome struct {
	controller string
	scenario   int
	seed       int
	score      plant.Score
}

// run has every controller meet every scenario with every seed, as many at once as there are processors.
func (s set) run(ctx context.Context, o options) ([]outcome, error) {
	var runs []outcome
	for scenario := range s.scenarios {
		for seed := range o.seeds {
			for _, c := range peer.All() {
				// The oracle is what the others are measured against.
				if c.Name == "oracle" || o.controller.MatchString(c.Name) {
					runs = append(runs, outcome{controller: c.Name, scenario: scenario, seed: seed})
				}
			}
		}
	}
	makers := map[string]peer.New{}
	for _, c := range peer.All() {
		makers[c.Name] = c.New
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range runs {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			one := &runs[i]
			one.score = simulate(s.scenarios[one.scenario], makers[one.controller], o.seed*1000+uint64(one.seed)) //nolint:gosec // small
			return nil
		})
	}
	return runs, group.Wait()
}

func simulate(s suite.Scenario, newController peer.New, seed uint64) plant.Score {
	world := plant.New(s.Scenario, seed)
	controller := newController(world.Scenario())
	for range s.Seconds {
		world.Step()
		world.Scale(controller.Replicas(world))
	}
	return world.Score()
}
