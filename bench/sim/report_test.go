// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/golden"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/suite"
)

var update = flag.Bool("update", false, "write the golden files")

// made is a set of scenarios that are not run.
func made(name string, scenarios ...string) set {
	s := set{name: name}
	for _, one := range scenarios {
		s.scenarios = append(s.scenarios, suite.Scenario{
			Scenario: model.Scenario{
				Name: one, Seconds: 600, Rate: model.Constant(
					100), Capacity: model.Constant(50), Objective: time.Minute, Start: 20 * time.Second, Max: 10,
			},
		})
	}
	return s
}

// ran are two runs of each scenario, the second a little worse than the first: costs and lateness as given by scenario.
func ran(controller string, costs, late []float64, each outcome) []outcome {
	var runs []outcome
	for i := range costs {
		for seed := range 2 {
			one := each
			one.controller, one.scenario, one.seed = controller, i, seed
			one.replicaSeconds = costs[i] * (1 + 0.1*float64(seed))
			one.lateShare = of(late[i])
			one.actions += seed
			runs = append(runs, one)
		}
	}
	return runs
}

// example has a suite and a held-out set in which one scenario had no message.
func example() report {
	named := made(suiteName, "step", "poison", "held")
	var runs []outcome
	for _, r := range [][]outcome{
		ran(oracleName, []float64{1200, 1100, 1000}, []float64{0, 0.01, 0}, outcome{actions: 2, settles: []quantity{of(40)}}),
		ran("keda-default10", []float64{6000, 2200, 9000}, []float64{0.1, 0.01, 0},
			outcome{actions: 20, flaps: 10, settles: []quantity{{}}}),
		ran(capacityName, []float64{1300, 1100, 1400}, []float64{0.01, 0, 0},
			outcome{actions: 3, flaps: 1, settles: []quantity{of(80)}}),
		ran("capacity without surge", []float64{1350, 1150, 1500}, []float64{0.05, 0, 0},
			outcome{actions: 2, flaps: 1, settles: []quantity{of(80)}}),
		ran("capacity without plateau", []float64{1300, 1100, 1400}, []float64{0.01, 0, 0},
			outcome{actions: 3, flaps: 1, settles: []quantity{of(80)}}),
	} {
		runs = append(runs, r...)
	}
	heldOut := made(heldOutName, "held-out-000", "held-out-001")
	var others []outcome
	for _, r := range [][]outcome{
		ran(oracleName, []float64{1200, 0}, []float64{0, 0}, outcome{actions: 2}),
		ran("keda-default10", []float64{6000, 500}, []float64{0.1, 0}, outcome{actions: 20, flaps: 10}),
		ran("simple", []float64{1500, 500}, []float64{0.02, 0}, outcome{actions: 9, flaps: 4}),
		ran(capacityName, []float64{1300, 400}, []float64{0.01, 0}, outcome{actions: 3, flaps: 2}),
	} {
		for i := range r {
			if r[i].scenario == 1 {
				r[i].lateShare = quantity{}
			}
		}
		others = append(others, r...)
	}
	return report{seed: 5, seeds: 2, sets: []summary{summarize(named, runs, 5), summarize(heldOut, others, 5)}}
}

func TestTablesAndJSONAreAsInTheGoldenFiles(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, example().writeTables(&out))
	golden.Equal(t, *update, "tables.txt", out.Bytes())
	path := filepath.Join(t.TempDir(), "sim.json")
	require.NoError(t, output.JSON(path, example().written()))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	golden.Equal(t, *update, "sim.json", text)
}

func TestTheAblationIsAsInTheGoldenFile(t *testing.T) {
	variants, err := parseVariants("surge,plateau,headroom")
	require.NoError(t, err)
	worths := example().sets[0].worths(variants, 5)
	require.Len(t, worths, 2, "what did not run is left out")
	var out bytes.Buffer
	require.NoError(t, output.Table(&out, "an ablation", worthRows(worths)))
	golden.Equal(t, *update, "ablation.txt", out.Bytes())
	require.False(t, worths[0].same)
	require.True(t, worths[1].same, "a part without any effect differs from one without a significant effect")
}

func TestAPartIsWorthKeepingIfSomethingIsWorseWithoutIt(t *testing.T) {
	around := func(low, high float64) change { return change{within: interval{of(low), of(high)}} }
	tests := map[string]struct {
		changes []change
		want    string
	}{
		"all intervals have the zero": {[]change{around(-1, 1), around(0, 0)}, "not seen"},
		"one is above":                {[]change{around(-1, 1), around(0.1, 1)}, "pays"},
		"one is below":                {[]change{around(-1, -0.1), around(0, 1)}, "costs"},
		"one is above and one below":  {[]change{around(-1, -0.1), around(0.1, 1)}, "a trade"},
		"a ratio around one":          {[]change{{within: interval{of(0.9), of(1.1)}, none: 1}}, "not seen"},
		"a ratio above one":           {[]change{{within: interval{of(1.01), of(1.1)}, none: 1}}, "pays"},
		"unknown is not met":          {[]change{{}}, "not seen"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, worth{changes: tt.changes}.verdict()) })
	}
}

// A load at which prefetched messages looked like a limit, and one with a limit.
func TestCeilingsThatTheModelContradictsAreCounted(t *testing.T) {
	for scenario, seed := range map[string]string{"held-out-078": "5551", "ratelimit": "7"} {
		printed, _, numbers := sim(t, "-seed="+seed, "-scenario=^"+scenario+"$", "-controller=^capacity$")
		require.Contains(t, printed, "false ceilings")
		for _, set := range numbers.Sets {
			require.EqualValues(t, 0, set["capacity"]["false_ceilings"], scenario)
			require.Nil(t, set["oracle"]["false_ceilings"], "it draws none")
		}
	}
}
