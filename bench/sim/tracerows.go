// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

const expertName = "keda-expert"

// traceRow is the performance of a controller on the episodes of a trace with a setting.
type traceRow struct {
	Trace      string `json:"trace"`
	Setting    string `json:"setting"`
	Controller string `json:"controller"`
	// CostOverOracle is a geometric mean, AvoidableLate a mean and Changes the sum.
	CostOverOracle quantity `json:"cost_over_oracle"`
	AvoidableLate  quantity `json:"avoidable_late_pp"`
	Changes        quantity `json:"changes"`
}

type traceRows []traceRow

// newTraceRows are those of all controllers but the oracle, which is the measure.
func newTraceRows(s summary, of setting) traceRows {
	var rows traceRows
	for _, c := range s.controllers {
		if c.controller == oracleName {
			continue
		}
		rows = append(rows, traceRow{
			Trace: s.name, Setting: of.String(), Controller: c.controller, CostOverOracle: c.whole.CostOverOracle,
			AvoidableLate: c.whole.AvoidableLate, Changes: c.whole.Actions,
		})
	}
	return rows
}

// column lists the values of all rows once, in their order.
func (rows traceRows) column(pick func(traceRow) string) []string {
	var all []string
	for _, r := range rows {
		if !slices.Contains(all, pick(r)) {
			all = append(all, pick(r))
		}
	}
	return all
}

func (rows traceRows) find(trace, setting, controller string) (traceRow, bool) {
	i := slices.IndexFunc(rows, func(r traceRow) bool {
		return r.Trace == trace && r.Setting == setting && r.Controller == controller
	})
	if i < 0 {
		return traceRow{}, false
	}
	return rows[i], true
}

func (r traceRow) cells() []string {
	return []string{r.CostOverOracle.text("%.3f"), r.AvoidableLate.text("%.3f"), r.Changes.text("%.0f")}
}

// writeTables writes a table of each trace, and one of where the expert is better than ours.
func (rows traceRows) writeTables(out io.Writer, seed uint64) error {
	settings := rows.column(func(r traceRow) string { return r.Setting })
	controllers := rows.column(func(r traceRow) string { return r.Controller })
	for _, name := range rows.column(func(r traceRow) string { return r.Trace }) {
		table := [][]string{{"setting", "controller", "cost/oracle", "avoidable pp", "changes"}}
		for _, setting := range settings {
			for _, controller := range controllers {
				if r, ok := rows.find(name, setting, controller); ok {
					table = append(table, append([]string{setting, controller}, r.cells()...))
				}
			}
		}
		if err := output.Table(out, fmt.Sprintf("%s, seed %d", name, seed), table); err != nil {
			return err
		}
	}
	if lost := rows.lost(); len(lost) > 1 {
		return output.Table(out, capacityName+" is later or dearer than "+expertName, lost)
	}
	return nil
}

// lost are the rows in which ours is later or dearer than the expert's.
func (rows traceRows) lost() [][]string {
	table := [][]string{{
		"trace", "setting", "cost/oracle", "avoidable pp", "changes", expertName + ": cost/oracle", "avoidable pp", "changes",
	}}
	for _, ours := range rows {
		if ours.Controller != capacityName {
			continue
		}
		expert, ok := rows.find(ours.Trace, ours.Setting, expertName)
		cost, late := ours.CostOverOracle.minus(expert.CostOverOracle), ours.AvoidableLate.minus(expert.AvoidableLate)
		if ok && (cost.known && cost.value > 0 || late.known && late.value > 0) {
			table = append(table, slices.Concat([]string{ours.Trace, ours.Setting}, ours.cells(), expert.cells()))
		}
	}
	return table
}
