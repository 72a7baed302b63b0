// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	bench "github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

func main() { command.Main("replay", run) }

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := command.Flags("replay", progress)
	files := flags.String("scenarios", "", "files with scenarios that were run, with spaces between them")
	results := flags.String("results", "",
		"directory with a result of each: kubectl pap bench run -f STEP.yaml --local -o json > DIRECTORY/STEP.json")
	path := flags.String("out", "", "file for the numbers as JSON; none when empty")
	if err := command.Parse(flags, args); err != nil {
		return err
	}
	if *files == "" || *results == "" {
		return errors.New("-scenarios or -results is empty: name scenarios, and the directory with their results")
	}
	r := report{Draws: draws, Scenarios: []comparison{}}
	for file := range strings.FieldsSeq(*files) {
		p, err := open(file, *results)
		if err != nil {
			return err
		}
		for i, c := range p.scenario.Contenders {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			r.Scenarios = append(r.Scenarios, p.compare(c, p.result.Contenders[i]))
		}
	}
	return errors.Join(output.JSON(*path, r), r.table(out))
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
