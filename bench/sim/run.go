// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"regexp"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/baseline"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/rival"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/suite"
)

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

	// replicaSeconds is the cost.
	replicaSeconds float64
	// lateShare of the messages, from 0 to 1; unknown without messages.
	lateShare      quantity
	actions, flaps int
	// redelivered messages for each replica that ended; unknown if none did.
	redelivered quantity
	// falseCeilings were drawn while more replicas would have processed more; unknown for controllers without ceilings.
	falseCeilings quantity
	// settles are the seconds after each step of the load until replicas stayed; unknown if they did not.
	settles []quantity
	// replicas of every second, the age of the oldest message in seconds, and the messages that wait; only of the first
	// seed, for plots.
	replicas, oldest, backlog []int32
}

// the names of the first two sets, and of the controllers that others are compared with.
const (
	suiteName    = "suite"
	heldOutName  = "held-out"
	oracleName   = "oracle"
	capacityName = "capacity"
)

// contestants are the controllers to run, in the order of the tables. The oracle always runs: it is the measure. So
// does ours if parts of it are left out.
func contestants(o options) []rival.Named {
	var all []rival.Named
	for _, c := range rival.All() {
		if c.Name == oracleName || len(o.ablate) > 0 && c.Name == capacityName || o.controller.MatchString(c.Name) {
			all = append(all, c)
		}
	}
	for _, v := range o.ablate {
		all = append(all, rival.Named{Name: v.controller(), New: baseline.Without(v.parts...)})
	}
	return all
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

// run runs every controller on every scenario with every seed, as many at once as there are processors.
func (s set) run(ctx context.Context, controllers []rival.Named, o options) ([]outcome, error) {
	type job struct {
		outcome
		newController baseline.New
	}
	var jobs []job
	for scenario := range s.scenarios {
		for seed := range o.seeds {
			for _, c := range controllers {
				jobs = append(jobs, job{outcome{controller: c.Name, scenario: scenario, seed: seed}, c.New})
			}
		}
	}
	runs := make([]outcome, len(jobs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, one := range jobs {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			scenario := s.scenarios[one.scenario]
			score, ceilings := simulate(scenario, one.newController, o.seed*1000+uint64(one.seed)) //nolint:gosec // small
			one.falseCeilings = ceilings
			one.fill(score, scenario)
			runs[i] = one.outcome
			return nil
		})
	}
	return runs, group.Wait()
}

func simulate(s suite.Scenario, newController baseline.New, seed uint64) (score model.Score, falseCeilings quantity) {
	system := model.New(s.Scenario, seed)
	controller := newController(system.Scenario())
	system.Run(controller.Replicas)
	if ours, ok := controller.(interface{ FalseCeilings() int }); ok {
		falseCeilings = of(float64(ours.FalseCeilings()))
	}
	return system.Score(), falseCeilings
}

// fill copies the reported numbers of a score.
func (o *outcome) fill(score model.Score, s suite.Scenario) {
	o.replicaSeconds, o.actions, o.flaps = score.ReplicaSeconds, score.Actions, score.Flaps
	o.lateShare = of(score.Late).over(of(score.Messages))
	o.redelivered = of(score.Redelivered).over(of(float64(score.Ended)))
	for i, at := range s.Steps {
		until := s.Seconds
		if i+1 < len(s.Steps) {
			until = s.Steps[i+1]
		}
		o.settles = append(o.settles, of(score.Settling(at, until, s.Objective)))
	}
	if o.seed == 0 {
		o.replicas, o.oldest, o.backlog = score.Trace, score.Oldest, score.Backlog
	}
}
