// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/peer"
)

type report struct {
	Seed  uint64    `json:"seed"`
	Seeds int       `json:"seeds"`
	Sets  []summary `json:"sets"`
}

type summary struct {
	Name        string        `json:"name"`
	Controllers []performance `json:"controllers"`
}

// performance of one controller over a set, or on one scenario. What cannot be told is absent.
type performance struct {
	Controller string `json:"controller,omitempty"`
	Scenario   string `json:"scenario,omitempty"`
	// Cost in replica-seconds over that of the oracle and over the least that the load needs, as geometric means; Low and
	// High bound 95 % of bootstrap samples of scenarios.
	CostOverOracle     float64  `json:"cost_over_oracle"`
	CostOverOracleLow  *float64 `json:"cost_over_oracle_low,omitempty"`
	CostOverOracleHigh *float64 `json:"cost_over_oracle_high,omitempty"`
	CostOverBound      float64  `json:"cost_over_bound"`
	// LatePercent of the messages; Avoidable percentage points are above the oracle's, scenario by scenario.
	LatePercent      float64  `json:"late_pct"`
	AvoidableLate    float64  `json:"avoidable_late_pp"`
	ViolationSeconds float64  `json:"violation_seconds"`
	Actions          float64  `json:"actions"`
	Flaps            float64  `json:"flaps"`
	SettleSeconds    *float64 `json:"settle_seconds,omitempty"`
	StepsAfterStep   *float64 `json:"steps_after_load_step,omitempty"`

	Scenarios []performance `json:"scenarios,omitempty"`
}

// summarize scores the runs of a set.
func summarize(s set, runs []outcome, seed uint64) summary {
	sum := summary{Name: s.name}
	oracle := map[[2]int]outcome{}
	for _, r := range runs {
		if r.controller == "oracle" {
			oracle[[2]int{r.scenario, r.seed}] = r
		}
	}
	for _, c := range peer.All() {
		byScenario := make([][]outcome, len(s.scenarios))
		for _, r := range runs {
			if r.controller == c.Name {
				byScenario[r.scenario] = append(byScenario[r.scenario], r)
			}
		}
		one := performance{Controller: c.Name}
		for i, of := range byScenario {
			if len(of) > 0 {
				one.Scenarios = append(one.Scenarios, scenarioPerformance(s, i, of, oracle))
			}
		}
		if len(one.Scenarios) > 0 {
			one.fold(seed)
			sum.Controllers = append(sum.Controllers, one)
		}
	}
	return sum
}

func scenarioPerformance(s set, scenario int, runs []outcome, oracle map[[2]int]outcome) performance {
	p := performance{Scenario: s.scenarios[scenario].Name}
	n := float64(len(runs))
	var costs, bounds, settles, steps []float64
	for _, r := range runs {
		best := oracle[[2]int{r.scenario, r.seed}].score
		costs = append(costs, r.score.ReplicaSeconds/math.Max(1, best.ReplicaSeconds))
		bounds = append(bounds, r.score.ReplicaSeconds/math.Max(1, r.score.LowerBound))
		p.LatePercent += 100 * r.score.LateShare() / n
		p.AvoidableLate += 100 * math.Max(0, r.score.LateShare()-best.LateShare()) / n
		p.ViolationSeconds += float64(r.score.ViolationSeconds) / n
		p.Actions += float64(r.score.Actions) / n
		p.Flaps += float64(r.score.Flaps) / n
		for i, at := range s.scenarios[scenario].Steps {
			until := s.scenarios[scenario].Seconds
			if i+1 < len(s.scenarios[scenario].Steps) {
				until = s.scenarios[scenario].Steps[i+1]
			}
			seconds, count := r.score.Settling(at, until, s.scenarios[scenario].Objective)
			settles, steps = append(settles, seconds), append(steps, float64(count))
		}
	}
	p.CostOverOracle, p.CostOverBound = geometric(costs), geometric(bounds)
	p.SettleSeconds, p.StepsAfterStep = meanOf(settles), meanOf(steps)
	return p
}

// fold sums up the scenarios.
func (p *performance) fold(seed uint64) {
	n := float64(len(p.Scenarios))
	var costs, bounds, settles, steps []float64
	for _, one := range p.Scenarios {
		costs, bounds = append(costs, one.CostOverOracle), append(bounds, one.CostOverBound)
		p.LatePercent += one.LatePercent / n
		p.AvoidableLate += one.AvoidableLate / n
		p.ViolationSeconds += one.ViolationSeconds
		p.Actions += one.Actions
		p.Flaps += one.Flaps
		if one.SettleSeconds != nil {
			settles = append(settles, *one.SettleSeconds)
		}
		if one.StepsAfterStep != nil {
			steps = append(steps, *one.StepsAfterStep)
		}
	}
	p.CostOverOracle, p.CostOverBound = geometric(costs), geometric(bounds)
	p.SettleSeconds, p.StepsAfterStep = meanOf(settles), meanOf(steps)
	low, high := bootstrap(costs, seed)
	p.CostOverOracleLow, p.CostOverOracleHigh = &low, &high
}

func geometric(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(math.Max(v, 1e-9))
	}
	return math.Exp(sum / float64(len(values)))
}

// meanOf those that are known; nil when none is.
func meanOf(values []float64) *float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	if n == 0 {
		return nil
	}
	mean := sum / float64(n)
	return &mean
}

// bootstrap returns the bounds of 95 % of the geometric means of resampled values.
func bootstrap(values []float64, seed uint64) (low, high float64) {
	const samples = 1000
	random := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // to be repeated
	means := make([]float64, samples)
	drawn := make([]float64, len(values))
	for i := range means {
		for j := range drawn {
			drawn[j] = values[random.IntN(len(values))]
		}
		means[i] = geometric(drawn)
	}
	slices.Sort(means)
	return means[samples*25/1000], means[samples*975/1000]
}

func (r report) writeTables(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	// The writer keeps an error for Flush.
	for _, s := range r.Sets {
		_, _ = fmt.Fprintf(table, "%s, seed %d x %d\n", s.Name, r.Seed, r.Seeds)
		_, _ = fmt.Fprintln(table, "controller\tcost / oracle\t95 %\tcost / bound\tlate %\tavoidable pp\tviolation s\tactions\tflaps\tsettle s\tsteps\t")
		for _, c := range s.Controllers {
			_, _ = fmt.Fprintf(table, "%s\t%.3f\t%.2f-%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t%s\t%s\t\n", c.Controller, c.CostOverOracle,
				*c.CostOverOracleLow, *c.CostOverOracleHigh, c.CostOverBound, c.LatePercent, c.AvoidableLate, c.ViolationSeconds, c.Actions, c.Flaps,
				cell(c.SettleSeconds), cell(c.StepsAfterStep))
		}
		_, _ = fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

func cell(value *float64) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *value)
}

func (r report) writeJSON(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the numbers: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the numbers: %w", err)
	}
	return nil
}
