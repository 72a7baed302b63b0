// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

// report is replay.json. A null is unknown.
type report struct {
	Pulsar     string    `json:"pulsar"`
	Kubernetes string    `json:"kubernetes"`
	Processors int       `json:"processors"`
	Begun      time.Time `json:"begun"`
	// Coverage is absent if it was not measured.
	Coverage  []coverage `json:"coverage,omitempty"`
	Scenarios []result   `json:"scenarios"`
}

// result is one scenario, real and simulated.
type result struct {
	Name    string `json:"name"`
	Seconds int    `json:"seconds"`
	// ObjectiveSeconds is the latency objective; 0 in earlier reports.
	ObjectiveSeconds float64 `json:"objective_seconds"`
	Real             score   `json:"real"`
	// Sim is the mean of the simulated runs with polls and syncs at the times of the real one, SimLow and SimHigh the
	// extremes of each figure.
	Sim     score `json:"sim"`
	SimLow  score `json:"sim_low"`
	SimHigh score `json:"sim_high"`
	// ReplicaHoursRatio is real over simulated, LateDifference real minus simulated in percentage points.
	ReplicaHoursRatio *float64 `json:"replica_hours_ratio"`
	LateDifference    *float64 `json:"late_difference_pp"`
	// AnyTime are the figures of simulations at random poll and sync times.
	AnyTime  figures  `json:"any_time"`
	Measured measured `json:"measured"`
	// Within reports whether both differences are within their goals.
	Within *bool `json:"within"`
	// Decisions are those in the policy's status during the real run.
	Decisions []decision `json:"decisions"`
	Trace     trace      `json:"trace"`
}

const (
	// hoursGoal is the largest difference of replica-hours, as a share, and lateGoal that of late messages in percentage
	// points.
	hoursGoal = 0.15
	lateGoal  = 2.0
)

func compare(s scenario, m measured, ran score, happened trace, sim simulated) result {
	r := result{
		Name: s.name, Seconds: s.seconds(), ObjectiveSeconds: s.objective.Seconds(), Real: ran, Sim: sim.Mean,
		SimLow: sim.Low, SimHigh: sim.High, AnyTime: sim.anyTime,
		Measured: m, Trace: happened,
	}
	r.Trace.Sim, r.Trace.SimLow, r.Trace.SimHigh, r.Trace.SimBacklog = sim.replicas, sim.least, sim.most, sim.backlog
	if ran.ReplicaHours != nil && sim.Mean.ReplicaHours != nil && *sim.Mean.ReplicaHours > 0 {
		r.ReplicaHoursRatio = known(*ran.ReplicaHours / *sim.Mean.ReplicaHours)
	}
	if ran.LatePct != nil && sim.Mean.LatePct != nil {
		r.LateDifference = known(*ran.LatePct - *sim.Mean.LatePct)
	}
	if r.ReplicaHoursRatio != nil && r.LateDifference != nil {
		r.Within = known(math.Abs(*r.ReplicaHoursRatio-1) <= hoursGoal && math.Abs(*r.LateDifference) <= lateGoal)
	}
	return r
}

func (r result) length() time.Duration { return time.Duration(r.Seconds) * time.Second }

// encode writes numbers with their significant digits only.
func (r report) encode() ([]byte, error) {
	for i := range r.Scenarios {
		t := &r.Scenarios[i].Trace
		for _, values := range []*[]float64{&t.Rate, &t.Arrived, &t.Sim, &t.SimBacklog} {
			short := make([]float64, len(*values))
			for i, v := range *values {
				short[i] = math.Round(100*v) / 100
			}
			*values = short
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding the report: %w", err)
	}
	return append(text, '\n'), nil
}

var errReport = errors.New("this is no report of replay")

// decode reads a report for another simulation.
func decode(text []byte) (report, error) {
	var r report
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return report{}, fmt.Errorf("%w: %w", errReport, err)
	}
	for _, one := range r.Scenarios {
		if err := one.check(); err != nil {
			return report{}, fmt.Errorf("%w: scenario %q: %w", errReport, one.Name, err)
		}
	}
	return r, nil
}

func (r result) check() error {
	if r.Seconds < leastSeconds || r.Seconds > longest {
		return fmt.Errorf("seconds is %d: it must be from %d to %d", r.Seconds, leastSeconds, longest)
	}
	if !(r.ObjectiveSeconds >= 0 && r.ObjectiveSeconds <= longest) {
		return fmt.Errorf("objective_seconds is %g: it must be from 0 to %d", r.ObjectiveSeconds, longest)
	}
	t := r.Trace
	for name, values := range map[string][]float64{
		"rate": t.Rate, "real": t.Real, "real_consuming": t.RealConsuming, "real_backlog": t.RealBacklog,
	} {
		if len(values) != r.Seconds {
			return fmt.Errorf("trace.%s has %d values for %d seconds", name, len(values), r.Seconds)
		}
	}
	if err := errors.Join(r.checkArrived(), r.Measured.Timetable.check()); err != nil {
		return err
	}
	for name, value := range map[string]*float64{
		"start_seconds": r.Measured.StartSeconds, "capacity_per_replica": r.Measured.CapacityPerReplica,
		"capacity_spread": r.Measured.CapacitySpread, "messages_per_entry": r.Measured.MessagesPerEntry,
	} {
		if value != nil && !(*value >= 0 && *value < 1e6) {
			return fmt.Errorf("measured.%s is %g: it must be from 0 to 1000000", name, *value)
		}
	}
	return nil
}

// checkArrived checks that there is a number of messages for each second, or none at all.
func (r result) checkArrived() error {
	if n := len(r.Trace.Arrived); n != 0 && n != r.Seconds {
		return fmt.Errorf("trace.arrived has %d values for %d seconds", n, r.Seconds)
	}
	for _, messages := range r.Trace.Arrived {
		if !(messages >= 0 && messages < 1e6) {
			return fmt.Errorf("trace.arrived has %g: it must be from 0 to 1000000", messages)
		}
	}
	return nil
}

// table writes the report to a terminal.
func (r report) table(out io.Writer) error {
	output.Printf(out, "Pulsar %s, Kubernetes %s, %d processors. ", r.Pulsar, r.Kubernetes, r.Processors)
	output.Printf(out, "Simulated: mean of %d runs (minimum..maximum) with polls and syncs at the real times. "+
		"Random times: the same with polls and syncs at random times.\n", draws)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { output.Printf(table, "%s\n", strings.Join(cells, "\t")) }
	if len(r.Scenarios) > 0 {
		output.Printf(table, "\n")
		row("scenario", "replica-hours", "simulated", "random times", "real/sim", "late %", "simulated", "random times",
			"difference", "actions", "simulated", "max replicas", "simulated", "within goals")
	}
	for _, one := range r.Scenarios {
		sim, anyTime := one.sim(), one.AnyTime
		row(one.Name,
			output.Number(one.Real.ReplicaHours, 3), sim.show(replicaHours, 3), anyTime.show(replicaHours, 3),
			output.Number(one.ReplicaHoursRatio, 2),
			output.Number(one.Real.LatePct, 2), sim.show(latePct, 2), anyTime.show(latePct, 2),
			output.Number(one.LateDifference, 2),
			output.Number(one.Real.Actions, 0), sim.show(actions, 0),
			output.Number(one.Real.MaxReplicas, 0), sim.show(maxReplicas, 0), verdict(one.Within))
	}
	r.measuredRows(table, row)
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

// measuredRows writes the measurements.
func (r report) measuredRows(table io.Writer, row func(cells ...string)) {
	if len(r.Scenarios) > 0 {
		output.Printf(table, "\n")
		row("measured", "start s", "spread", "starts", "capacity/s", "spread", "busy", "slack", "warm-up", "learned/s",
			"redelivered", "again", "lag s", "load")
	}
	for _, one := range r.Scenarios {
		m := one.Measured
		row(one.Name,
			output.Number(m.StartSeconds, 1), output.Number(m.StartSpread, 2), output.Whole(&m.Starts),
			output.Number(m.CapacityPerReplica, 1), output.Number(m.CapacitySpread, 3),
			output.Number(m.BusyAtSaturation, 3), output.Number(m.CallSlack, 3), output.Number(m.WarmUpSpeed, 2),
			output.Number(m.LearnedCapacity, 1), output.Whole(m.Redelivered), output.Whole(&m.Repeated),
			output.Number(m.LoadLagSeconds, 1), output.Number(m.LoadAverage, 1))
	}
	if len(r.Coverage) > 0 {
		output.Printf(table, "\n")
		row("saturated Java instance", "call ms", "busy", "overhead ms")
	}
	for _, c := range r.Coverage {
		row("", output.Number(c.CallMillis, 2), output.Number(c.Busy, 3), output.Number(c.OverheadMillis, 2))
	}
}

func (r result) sim() figures { return figures{Mean: r.Sim, Low: r.SimLow, High: r.SimHigh} }

func replicaHours(s score) *float64 { return s.ReplicaHours }
func latePct(s score) *float64      { return s.LatePct }
func actions(s score) *float64      { return s.Actions }
func maxReplicas(s score) *float64  { return s.MaxReplicas }

// show writes the mean with the extremes.
func (f figures) show(pick func(score) *float64, digits int) string {
	if pick(f.Mean) == nil {
		return output.Unknown
	}
	return fmt.Sprintf("%s (%s..%s)", output.Number(pick(f.Mean), digits), output.Number(pick(f.Low), digits),
		output.Number(pick(f.High), digits))
}

func verdict(within *bool) string {
	switch {
	case within == nil:
		return output.Unknown
	case *within:
		return "yes"
	default:
		return "NO"
	}
}
