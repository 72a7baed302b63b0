// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/recording"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/suite"
)

const (
	// traceReplicas are what the mean of a trace needs, of replicas that process traceCapacity messages per second each.
	traceReplicas, traceCapacity = 5, 50
	// traceMax replicas may be added, and more up to peakFactor of what an episode needs at its peak.
	traceMax, peakFactor = 100, 2
)

// setting of the Function that gets a trace.
type setting struct{ start, objective time.Duration }

func (s setting) String() string {
	return fmt.Sprintf("start %gs, objective %gs", s.start.Seconds(), s.objective.Seconds())
}

// settings are all on which traces are run.
func settings() []setting {
	var all []setting
	for _, objective := range []time.Duration{30 * time.Second, 5 * time.Minute} {
		for _, start := range []time.Duration{10 * time.Second, time.Minute, 3 * time.Minute} {
			all = append(all, setting{start, objective})
		}
	}
	return all
}

// recordedTrace has the episodes of a file.
type recordedTrace struct {
	name string
	// factor makes rates of which the mean needs traceReplicas.
	factor   float64
	episodes []recording.Episode
}

// traceExtensions are those of the files that are traces.
func traceExtensions() []string { return []string{".csv", ".csv.gz"} }

// readTraces reads the traces of a directory in the order of their names.
func readTraces(dir string, seed uint64) ([]recordedTrace, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("-traces: %w", err)
	}
	var all []recordedTrace
	for _, entry := range entries {
		for _, extension := range traceExtensions() {
			name, isTrace := strings.CutSuffix(entry.Name(), extension)
			if !isTrace {
				continue
			}
			one, err := readTrace(filepath.Join(dir, entry.Name()), seed)
			if err != nil {
				return nil, fmt.Errorf("reading trace %s: %w", entry.Name(), err)
			}
			one.name = name
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("-traces %s has no file that ends in %s", dir, strings.Join(traceExtensions(), " or "))
	}
	return all, nil
}

func readTrace(path string, seed uint64) (recordedTrace, error) {
	file, err := os.Open(path)
	if err != nil {
		return recordedTrace{}, err
	}
	defer file.Close() //nolint:errcheck // only read
	recorded, err := recording.Read(file)
	if err != nil {
		return recordedTrace{}, err
	}
	mean := recorded.Mean()
	if mean == 0 {
		return recordedTrace{}, errors.New("it has no messages")
	}
	// Each trace has random numbers of its own, so that its episodes do not depend on the other files.
	episodes, err := recorded.Episodes(rand.New(rand.NewPCG(seed, 0x7ace)))
	return recordedTrace{factor: traceReplicas * traceCapacity / mean, episodes: episodes}, err
}

// scenario is an episode with a setting. It begins with as many replicas as its first rate needs.
func (t recordedTrace) scenario(e recording.Episode, s setting) suite.Scenario {
	most := max(traceMax, int(math.Ceil(peakFactor*t.factor*e.Peak()/traceCapacity)))
	rate := func(second float64) float64 { return t.factor * e.Rate(second) }
	initial := math.Ceil(rate(0) / traceCapacity)
	return suite.Scenario{Scenario: model.Scenario{
		Name:    fmt.Sprintf("%s.%s.%gs.%gs", t.name, e.Name, s.start.Seconds(), s.objective.Seconds()),
		Seconds: e.Seconds, Rate: rate, Capacity: model.Constant(traceCapacity), Objective: s.objective, Start: s.start,
		Initial: int(min(float64(most), max(1, initial))), Min: 1, Max: most,
		Partitions: 1, Type: backlog.Shared,
	}}
}

// runTraces runs every trace with every setting, and writes the rows.
func runTraces(ctx context.Context, o options, out io.Writer) error {
	traces, err := readTraces(o.traces, o.seed)
	if err != nil {
		return err
	}
	var rows traceRows
	for _, t := range traces {
		for _, s := range settings() {
			one := set{name: t.name}
			for _, e := range t.episodes {
				one.scenarios = append(one.scenarios, t.scenario(e, s))
			}
			if one.scenarios = matching(one.scenarios, o.scenario); len(one.scenarios) == 0 {
				continue
			}
			runs, err := one.run(ctx, contestants(o), o)
			if err != nil {
				return err
			}
			if err := plotSet(one, runs, o); err != nil {
				return err
			}
			rows = append(rows, newTraceRows(summarize(one, runs, o.seed), s)...)
		}
	}
	if len(rows) == 0 {
		return fmt.Errorf("-scenario %q is the name of none: all are run without it", o.scenario)
	}
	if err := rows.table(out, o.seed); err != nil {
		return err
	}
	return output.JSON(o.out, rows)
}
