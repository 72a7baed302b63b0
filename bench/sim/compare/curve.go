// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/baseline"
)

// Curve is what latency objectives cost on one load. Ranges are over the inexact inputs.
type Curve struct {
	Load     Load     `json:"load"`
	Function Function `json:"function"`
	Points   []Point  `json:"items"`
	// Limits of the load, the lowest first.
	Limits []Limit `json:"limits"`
	// Notes are caveats about the data.
	Notes []string `json:"notes,omitempty"`
}

// Point is the outcome of one latency objective.
type Point struct {
	ObjectiveSeconds   float64 `json:"latencyObjectiveSeconds"`
	ReplicaHoursPerDay Range   `json:"replicaHoursPerDay"`
	LateRatio          Range   `json:"lateRatio"`
	MostReplicas       int     `json:"mostReplicas"`
	// CostPerDay is null without a cost per replica and hour.
	CostPerDay *Range `json:"costPerDay"`
	// IsPolicy is the objective of the policy.
	IsPolicy bool `json:"isPolicy"`
}

// Limit is a number of replicas beyond which no more help, and the messages per second that they can process.
type Limit struct {
	By                string `json:"by"`
	Replicas          int    `json:"replicas"`
	MessagesPerSecond Range  `json:"messagesPerSecond"`
}

// NewCurve simulates the policy with its own latency objective and with the others.
func NewCurve(ctx context.Context, c Config, objectives []time.Duration) (Curve, error) {
	if err := c.complete(); err != nil {
		return Curve{}, err
	}
	objectives = append(slices.Clone(objectives), c.objective())
	slices.Sort(objectives)
	var runs []run
	for _, objective := range slices.Compact(objectives) {
		one := c
		one.Spec.LatencyObjective.Duration = objective
		runs = append(runs, run{one, contender{name: Policy, new: baseline.Limited(one.Spec, one.limitsAt)}})
	}
	scores, err := simulate(ctx, runs)
	if err != nil {
		return Curve{}, err
	}
	curve := Curve{Load: c.load(), Function: c.function(), Notes: c.Notes}
	perDay := 24 * hour / float64(c.Load.Seconds())
	for i, one := range runs {
		o := one.outcome(one.contender, scores[i])
		point := Point{
			ObjectiveSeconds: one.objective().Seconds(), ReplicaHoursPerDay: o.ReplicaHours.times(perDay),
			LateRatio: o.LateRatio, MostReplicas: o.MostReplicas, IsPolicy: one.objective() == c.objective(),
		}
		if o.Cost != nil {
			point.CostPerDay = new(o.Cost.times(perDay))
		}
		curve.Points = append(curve.Points, point)
	}
	return curve, nil
}

// AddLimit adds a limit of replicas.
func (c *Curve) AddLimit(by string, replicas int) {
	c.Limits = append(c.Limits, Limit{by, replicas, c.Function.MessagesPerSecond.times(float64(replicas))})
	slices.SortStableFunc(c.Limits, func(a, b Limit) int { return cmp.Compare(a.Replicas, b.Replicas) })
}

// Text is the curve for a terminal of a width.
func (c Curve) Text(width int) string {
	var text strings.Builder
	output.Printf(&text, "%s\n%s\n\n", c.Load.text(width), c.Function.text(width))
	header := []string{"OBJECTIVE", "REPLICA-HOURS/DAY", "LATE", "MAX"}
	if c.Points[0].CostPerDay != nil {
		header = append(header, "COST/DAY")
	}
	rows := [][]string{header}
	for _, p := range c.Points {
		objective := time.Duration(p.ObjectiveSeconds * float64(time.Second)).String()
		if p.IsPolicy {
			objective += " (now)"
		}
		row := []string{
			objective, p.ReplicaHoursPerDay.text("%.1f"), p.LateRatio.times(100).text("%.2f%%"), strconv.Itoa(p.MostReplicas),
		}
		if p.CostPerDay != nil {
			row = append(row, p.CostPerDay.text("%.2f"))
		}
		rows = append(rows, row)
	}
	text.WriteString(output.Columns(rows, columnGap, width) + "\n")
	rows = [][]string{{"LIMIT", "REPLICAS", "MESSAGES/S", "OF PEAK"}}
	for _, limit := range c.Limits {
		rows = append(rows, []string{
			limit.By, strconv.Itoa(limit.Replicas), limit.MessagesPerSecond.text("%.4g"),
			limit.MessagesPerSecond.times(100 / c.Load.PeakMessagesPerSecond).text("%.0f%%"),
		})
	}
	text.WriteString(output.Columns(rows, columnGap, width))
	for i, note := range c.Notes {
		if i == 0 {
			text.WriteByte('\n')
		}
		text.WriteString(output.Wrap("Note: "+note, "", indent, width) + "\n")
	}
	return text.String()
}
