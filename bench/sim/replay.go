// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	bench "github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

// replayed is a contender of a scenario, real and simulated: a row of replay.json.
type replayed struct {
	Name      string  `json:"name"`
	Contender string  `json:"contender"`
	Setting   string  `json:"setting"`
	Real      figures `json:"real"`
	// Sim is the mean of the simulated runs, SimLow and SimHigh the extremes of each figure.
	Sim     figures `json:"sim"`
	SimLow  figures `json:"sim_low"`
	SimHigh figures `json:"sim_high"`
}

// replay simulates the contenders of scenarios that ran on real parts, with the same messages, and writes the rows.
func replay(ctx context.Context, o options) error {
	rows := []replayed{}
	for file := range strings.FieldsSeq(o.replay) {
		p, err := open(file, o.results)
		if err != nil {
			return err
		}
		for i, c := range p.scenario.Contenders {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			ran := p.result.Contenders[i]
			row := replayed{Name: p.result.Scenario, Contender: c.Name, Setting: ran.Setting, Real: figuresOf(ran)}
			row.Sim, row.SimLow, row.SimHigh = p.simulate(c)
			rows = append(rows, row)
		}
	}
	return output.JSON(o.out, rows)
}

// played is a scenario with the result of its run.
type played struct {
	scenario scenario.Scenario
	schedule load.Schedule
	result   bench.Result
}

// open reads a scenario and its result.
func open(file, results string) (p played, err error) {
	if p.scenario, p.schedule, err = scenario.Open(file); err != nil {
		return played{}, err
	}
	path := filepath.Join(results, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))+".json")
	text, err := os.ReadFile(path)
	if err != nil {
		return played{}, fmt.Errorf("-results: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p.result); err != nil {
		return played{}, fmt.Errorf("reading result %s: %w", path, err)
	}
	return p, p.check(path)
}

// check rejects results of another scenario, and those that say nothing of the contenders.
func (p played) check(path string) error {
	var names, measured []string
	for _, c := range p.scenario.Contenders {
		names = append(names, c.Name)
	}
	for _, c := range p.result.Contenders {
		measured = append(measured, c.Name)
	}
	switch {
	case p.result.Verdict.Outcome == bench.NotMeasured:
		return fmt.Errorf("result %s %s: run the scenario again", path, p.result.Verdict.Text())
	case p.result.Scenario != p.scenario.Metadata.Name || len(names) == 0 || strings.Join(names, " ") !=
		strings.Join(measured, " "):
		return fmt.Errorf("result %s is of scenario %q with contenders %q: it must be of %q with %q", path, p.result.Scenario,
			measured, p.scenario.Metadata.Name, names)
	}
	return nil
}
