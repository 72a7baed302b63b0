// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

// report has all results.
type report struct {
	seed  uint64
	seeds int
	sets  []summary
}

// writeTables writes tables for people.
func (r report) writeTables(out io.Writer) error {
	for _, s := range r.sets {
		title := fmt.Sprintf("%s, seed %d, %d runs of each of %d scenarios", s.name, r.seed, r.seeds, s.scenarioCount())
		if err := output.Table(out, title, s.rows()); err != nil {
			return err
		}
	}
	return nil
}

func (s summary) scenarioCount() int {
	most := 0
	for _, c := range s.controllers {
		most = max(most, len(c.scenarios))
	}
	return most
}

func (s summary) rows() [][]string {
	rows := [][]string{{
		"controller", "cost/oracle", "95 %", "late %", "avoidable pp", "95 %", "actions", "flaps", "settle s",
		"unsettled %", "redelivered", "false ceilings",
	}}
	for _, c := range s.controllers {
		n := c.whole
		rows = append(rows, []string{
			c.controller, n.CostOverOracle.text("%.3f"), c.costInterval.text("%.2f"), n.LatePercent.text("%.2f"),
			n.AvoidableLate.text("%.2f"), c.lateInterval.text("%.2f"), n.Actions.text("%.0f"), n.Flaps.text("%.0f"),
			n.SettleSeconds.text("%.0f"), n.UnsettledPercent.text("%.0f"), n.RedeliveredEach.text("%.1f"),
			n.FalseCeilings.text("%.0f"),
		})
	}
	return rows
}
