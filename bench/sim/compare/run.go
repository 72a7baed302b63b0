// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// plan is one assumption about the inexact inputs.
type plan struct{ capacity, start float64 }

// plans are the expected case first, then the worst and the best, if they differ.
func (c Config) plans() []plan {
	all := []plan{{c.Capacity.Expected, c.Start.Expected}}
	if !c.Capacity.IsExact() || !c.Start.IsExact() {
		all = append(all, plan{c.Capacity.Low, c.Start.High}, plan{c.Capacity.High, c.Start.Low})
	}
	return all
}

// scenario of the model.
func (c Config) scenario(p plan) model.Scenario {
	least, most := c.least(), int(c.Spec.MaxReplicas)
	initial, known := c.Load.Replicas(0)
	if !known {
		initial = int(min(float64(most), math.Ceil(c.Load.Rate(0)/p.capacity)))
	}
	return model.Scenario{
		Name: "recorded", Seconds: c.Load.Seconds(), Rate: c.Load.Rate, Capacity: model.Constant(p.capacity),
		Objective: c.objective(), Start: time.Duration(p.start * float64(time.Second)),
		Initial: min(most, max(least, initial)), Min: least, Max: most, Partitions: c.Partitions, Type: c.Subscription,
		CPU: c.CPUShare, RestartsOnScale: c.Spec.PulsarFunctionRef.Name != "",
	}
}

// Run simulates all contenders, as many at once as there are processors.
func Run(ctx context.Context, c Config) (Result, error) {
	if err := c.complete(); err != nil {
		return Result{}, err
	}
	var runs []run
	contenders := c.contenders()
	for _, one := range contenders {
		runs = append(runs, run{c, one})
	}
	scores, err := simulate(ctx, runs)
	if err != nil {
		return Result{}, err
	}
	return c.result(contenders, scores), nil
}

// run is a contender on a configuration.
type run struct {
	Config
	contender
}

// simulate returns the scores of each run, one for each of its plans.
func simulate(ctx context.Context, runs []run) ([][]model.Score, error) {
	scores := make([][]model.Score, len(runs))
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, one := range runs {
		plans := one.plans()
		scores[i] = make([]model.Score, len(plans))
		for j, p := range plans {
			group.Go(func() (err error) {
				scores[i][j], err = one.simulate(running, one.contender, p)
				if j > 0 { // the expected case is drawn
					scores[i][j].Trace, scores[i][j].Oldest, scores[i][j].Backlog = nil, nil, nil
				}
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return scores, nil
}

func (c Config) simulate(ctx context.Context, one contender, p plan) (model.Score, error) {
	scenario := c.scenario(p)
	if one.initial > 0 {
		scenario.Initial = one.initial
	}
	system := model.New(scenario, c.Seed)
	controller := one.new(system.Scenario())
	for range scenario.Seconds {
		if ctx.Err() != nil {
			return model.Score{}, fmt.Errorf("simulating %s: %w", one.name, context.Cause(ctx))
		}
		system.Step()
		system.Scale(controller.Replicas(system))
	}
	return system.Score(), nil
}
