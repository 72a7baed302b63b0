// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

// report has all results.
type report struct {
	seed  uint64
	seeds int
	sets  []summary
}

// writeTables writes tables for people: the sets, their special scenarios, and the goals.
func (r report) writeTables(out io.Writer) error {
	for _, s := range r.sets {
		title := fmt.Sprintf("%s, seed %d, %d runs of each of %d scenarios", s.name, r.seed, r.seeds, s.scenarioCount())
		if err := output.Table(out, title, s.rows()); err != nil {
			return err
		}
		if rows := s.pathologyRows(); len(rows) > 1 {
			if err := output.Table(out, s.name+": the pathologies "+strings.Join(s.pathologies, ", "), rows); err != nil {
				return err
			}
		}
		if rows := goalRows(s.goals()); len(rows) > 1 {
			if err := output.Table(out, s.name+": the goals of "+capacityName, rows); err != nil {
				return err
			}
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
		"controller", "cost/oracle", "95 %", "cost/bound", "late %", "avoidable pp", "95 %", "violation s", "actions",
		"flaps",
		"settle s", "unsettled %", "steps", "redelivered", "false ceilings",
	}}
	for _, c := range s.controllers {
		n := c.whole
		rows = append(rows, []string{
			c.controller, n.CostOverOracle.text(
				"%.3f"), c.costInterval.text("%.2f"), n.CostOverBound.text("%.2f"), n.LatePercent.text("%.2f"),
			n.AvoidableLate.text(
				"%.2f"), c.lateInterval.text("%.2f"), n.ViolationSeconds.text("%.0f"), n.Actions.text("%.0f"), n.Flaps.text("%.0f"),
			n.SettleSeconds.text("%.0f"), n.UnsettledPercent.text("%.0f"), n.StepsAfterStep.text("%.1f"),
			n.RedeliveredEach.text("%.1f"), n.FalseCeilings.text("%.0f"),
		})
	}
	return rows
}

// pathologyRows have the cost over the oracle of each scenario that no rate or backlog explains, and the worst.
func (s summary) pathologyRows() [][]string {
	rows := [][]string{append([]string{"controller", "worst cost/oracle", "in"}, s.pathologies...)}
	for _, c := range s.controllers {
		name, worst := s.worstPathology(c)
		if !worst.known {
			continue
		}
		row := []string{c.controller, worst.text("%.2f"), name}
		for _, pathology := range s.pathologies {
			cost := quantity{}
			for _, one := range c.scenarios {
				if one.name == pathology {
					cost = one.CostOverOracle
				}
			}
			row = append(row, cost.text("%.2f"))
		}
		rows = append(rows, row)
	}
	return rows
}
