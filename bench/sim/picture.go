// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"image/color"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot/plotter"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/figure"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/suite"
)

// picture shows one load under a few controllers.
type picture struct {
	scenario suite.Scenario
	runs     []outcome
}

// plotSet writes a plot of each scenario of a set, of its runs with the first seed.
func plotSet(s set, runs []outcome, o options) error {
	if o.plots == "" || s.name == heldOutName && !o.plotHeldOut {
		return nil
	}
	for i, scenario := range s.scenarios {
		p := picture{scenario: scenario}
		for _, r := range runs {
			if r.scenario == i && r.seed == 0 && o.plotted.MatchString(r.controller) {
				p.runs = append(p.runs, r)
			}
		}
		if len(p.runs) == 0 {
			return fmt.Errorf("-plot %q is the name of no controller that ran: use one of the table's", o.plotted)
		}
		image, err := p.figure().PNG()
		if err != nil {
			return fmt.Errorf("plotting %s: %w", scenario.Name, err)
		}
		if err := output.File(filepath.Join(o.plots, scenario.Name+".png"), image); err != nil {
			return err
		}
	}
	return nil
}

// looks is the curve of a controller: one keeps its own colour whichever others are drawn.
func looks(controller string, others int) figure.Curve {
	switch controller {
	case capacityName:
		return figure.Curve{Color: figure.Blue(), Width: 2.4}
	case oracleName:
		return figure.Curve{Color: figure.Ink(), Dashes: []float64{5, 3}, Width: 1.4}
	case simpleName:
		return figure.Curve{Color: figure.Orange(), Width: 1.4}
	case kedaName:
		return figure.Curve{Color: figure.Purple(), Width: 1.4}
	}
	rest := []color.Color{figure.Green(), figure.Sky(), figure.Yellow(), figure.Ink()}
	return figure.Curve{Color: rest[others%len(rest)], Width: 1.4, Dashes: []float64{float64(3 + 4*(others/len(rest))), 2}}
}

func (p picture) figure() figure.Figure {
	unit := unitFor(p.scenario.Seconds)
	f := figure.Figure{
		Title: p.scenario.Name + ": replicas and how long messages wait", Subtitle: p.subtitle(),
		XLabel: "time (" + unit.name +
			")", XMax: float64(p.scenario.Seconds) / unit.seconds, XTick: unit.tick(p.scenario.Seconds),
	}
	for _, at := range p.scenario.Steps {
		f.Marks = append(f.Marks, float64(at)/unit.seconds)
	}
	many, few := p.byScale()
	f.Panels = []figure.Panel{p.replicas(few, unit)}
	if len(many) > 0 {
		f.Panels = append(f.Panels, p.replicas(many, unit))
	}
	f.Panels = append(f.Panels, p.ages(unit))
	return f
}

func (p picture) subtitle() string {
	s := p.scenario
	late := make([]string, len(p.runs))
	for i, r := range p.runs {
		late[i] = r.controller + " " + r.lateShare.percent().text("%.2f") + " %"
	}
	return fmt.Sprintf(
		"A replica processes %.4g messages/s and starts in %.0f s. Messages later than %.0f s: %s. One run of luck.",
		s.Capacity(0), s.Start.Seconds(), s.Objective.Seconds(), strings.Join(late, ", "))
}

// byScale separates controllers with so many more replicas that a common axis would hide the rest.
func (p picture) byScale() (many, few []outcome) {
	const muchMore = 2.5
	need := 0.0
	for _, point := range p.need(unit{seconds: 1}) {
		need = max(need, point.Y)
	}
	for _, r := range p.runs {
		highest := 0.0
		for _, n := range r.replicas {
			highest = max(highest, float64(n))
		}
		if r.controller != capacityName && r.controller != oracleName &&
			highest > muchMore*min(float64(p.scenario.Max), max(need, 4)) {
			many = append(many, r)
		} else {
			few = append(few, r)
		}
	}
	if len(few) == 0 {
		return nil, many
	}
	return many, few
}

func (p picture) replicas(runs []outcome, u unit) figure.Panel {
	name, need := "load / capacity", p.need(u)
	// Replicas beyond the maximum would only flatten the rest of the plot.
	most, limit := 0.0, float64(p.scenario.Max)
	for i, point := range need {
		most, need[i].Y = max(most, point.Y), min(limit, point.Y)
	}
	if most > limit {
		name = fmt.Sprintf("load / capacity (cut: up to %.0f)", most)
	}
	panel := figure.Panel{YLabel: "replicas", Curves: []figure.Curve{{
		Name: name, Points: need, Color: figure.Gray(), Fill: figure.Pale(figure.Gray()), Width: 1,
	}}}
	return p.add(panel, runs, u, func(r outcome) []int32 { return r.replicas })
}

func (p picture) ages(u unit) figure.Panel {
	objective := p.scenario.Objective.Seconds()
	panel := figure.Panel{YLabel: "oldest message (s)"}
	panel = p.add(panel, p.runs, u, func(r outcome) []int32 { return r.oldest })
	panel.Curves = append(panel.Curves, figure.Curve{
		Name: fmt.Sprintf("objective (%.0f s)", objective), Color: figure.Ink(), Width: 1, Dashes: []float64{2, 2},
		Points: plotter.XYs{{X: 0, Y: objective}, {X: float64(p.scenario.Seconds) / u.seconds, Y: objective}},
	})
	return panel
}

// add draws our curve over the others.
func (p picture) add(panel figure.Panel, runs []outcome, u unit, pick func(outcome) []int32) figure.Panel {
	var ours []figure.Curve
	for i, r := range runs {
		c := looks(r.controller, i)
		c.Name, c.Points = r.controller, extremes(pick(r), u)
		if r.controller == capacityName {
			ours = append(ours, c)
		} else {
			panel.Curves = append(panel.Curves, c)
		}
	}
	panel.Curves = append(panel.Curves, ours...)
	return panel
}

// need is the number of replicas that the load keeps busy.
func (p picture) need(u unit) plotter.XYs {
	every := max(1, p.scenario.Seconds/columns)
	var points plotter.XYs
	for second := 0; second <= p.scenario.Seconds; second += every {
		at := float64(second)
		points = append(points, plotter.XY{X: at / u.seconds, Y: max(0, p.scenario.Rate(at)) / p.scenario.Capacity(at)})
	}
	return points
}

// columns is about the width of the plot in pixels: more points are not visible.
const columns = 1000

// extremes returns the least and the most of each column, in their order, so that no peak is lost; steps are vertical.
func extremes(values []int32, u unit) plotter.XYs {
	every := max(1, (len(values)+columns-1)/columns)
	var points plotter.XYs
	push := func(second int, value int32) {
		x, y := float64(second)/u.seconds, float64(value)
		if n := len(points); n > 0 && points[n-1].Y != y {
			points = append(points, plotter.XY{X: x, Y: points[n-1].Y})
		}
		points = append(points, plotter.XY{X: x, Y: y})
	}
	for from := 0; from < len(values); from += every {
		least, most := from, from
		for i := from; i < min(from+every, len(values)); i++ {
			if values[i] < values[least] {
				least = i
			}
			if values[i] > values[most] {
				most = i
			}
		}
		push(min(least, most), values[min(least, most)])
		if least != most {
			push(max(least, most), values[max(least, most)])
		}
	}
	if n := len(points); n > 0 {
		points = append(points, plotter.XY{X: float64(len(values)) / u.seconds, Y: points[n-1].Y})
	}
	return points
}

// unit of time on an axis.
type unit struct {
	name    string
	seconds float64
	// round distances of ticks.
	round []float64
}

// unitFor so many seconds.
func unitFor(seconds int) unit {
	const minute, hour, day = 60, 3600, 86400
	switch {
	case seconds <= 5*minute:
		return unit{"s", 1, []float64{10, 20, 50}}
	case seconds <= 4*hour:
		return unit{"min", minute, []float64{1, 2, 5, 10, 20, 30}}
	case seconds <= 3*day:
		return unit{"h", hour, []float64{1, 2, 3, 6, 12}}
	default:
		return unit{"days", day, []float64{1, 2, 5, 10}}
	}
}

// tick is the least round distance for at most 14 ticks.
func (u unit) tick(seconds int) float64 {
	for _, every := range u.round {
		if float64(seconds)/u.seconds/every <= 14 {
			return every
		}
	}
	return u.round[len(u.round)-1]
}
