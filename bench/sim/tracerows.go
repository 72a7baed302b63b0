// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

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

func (rows traceRows) table(out io.Writer, seed uint64) error {
	table := [][]string{{"trace", "setting", "controller", "cost/oracle", "avoidable pp", "changes"}}
	for _, r := range rows {
		table = append(table, []string{
			r.Trace, r.Setting, r.Controller,
			r.CostOverOracle.text("%.3f"), r.AvoidableLate.text("%.3f"), r.Changes.text("%.0f"),
		})
	}
	return output.Table(out, fmt.Sprintf("recorded loads, seed %d", seed), table)
}
