// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"gonum.org/v1/plot/plotter"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/figure"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
)

// rateWindow averages out the jitter of a busy machine.
const rateWindow = 3 * time.Second

// picture is the content of the plot.
type picture struct {
	title, subtitle string
	scenario        scenario
	samples         []sample
	// begun is the start of the load, for the timeline.
	begun    time.Time
	timeline []mesh.Sample
}

func newPicture(o outcome, s summary) picture {
	return picture{
		title: fmt.Sprintf("Replicas of a Pulsar Function follow a load of %.0f, %.0f and %.0f messages/s",
			o.scenario.low, o.scenario.high, o.scenario.low),
		subtitle: fmt.Sprintf(
			"More replicas %s after the step up. %d of %d messages took longer than the objective of %.0f s. "+
				"Pulsar %s, Kubernetes %s.",
			seconds(s.ReactionSeconds), s.MessagesLate, s.MessagesDone, s.ObjectiveSeconds, s.PulsarVersion,
			s.KubernetesVersion),
		scenario: o.scenario, samples: o.samples, begun: o.begun, timeline: o.timeline,
	}
}

// image draws three panels that share the time axis, and returns a PNG.
func (p picture) image() ([]byte, error) {
	return figure.Figure{
		Title: p.title, Subtitle: p.subtitle, XLabel: "time since the load began (s)", XMax: p.length().Seconds(), XTick: 20,
		Marks:  []float64{min(p.scenario.calm, p.length()).Seconds(), min(p.scenario.fall(), p.length()).Seconds()},
		Panels: []figure.Panel{p.rates(), p.backlog(), p.replicas()},
	}.PNG()
}

func (p picture) rates() figure.Panel {
	published := p.rate(func(one sample) int64 { return one.published })
	done := p.rate(func(one sample) int64 { return one.done })
	return figure.Panel{YLabel: "messages per second", Curves: []figure.Curve{
		{Name: "published", Points: published, Color: figure.Gray(), Fill: figure.Pale(figure.Gray())},
		{Name: "done", Points: done, Color: figure.Green()},
	}}
}

// rate is the mean growth of a count over rateWindow, at the middle of that window.
func (p picture) rate(pick func(sample) int64) plotter.XYs {
	samples := append([]sample{{}}, p.samples...) // both counts start at 0
	var points plotter.XYs
	first := 0
	for i, one := range samples {
		for first < i && one.at-samples[first+1].at >= rateWindow {
			first++
		}
		if elapsed := (one.at - samples[first].at).Seconds(); elapsed > 0 {
			points = append(points, plotter.XY{
				X: (one.at + samples[first].at).Seconds() / 2,
				Y: float64(pick(one)-pick(samples[first])) / elapsed,
			})
		}
	}
	return points
}

func (p picture) backlog() figure.Panel {
	points := make(plotter.XYs, len(p.samples))
	for i, one := range p.samples {
		points[i] = plotter.XY{X: one.at.Seconds(), Y: float64(one.backlog())}
	}
	return figure.Panel{YLabel: "backlog (messages)", Curves: []figure.Curve{
		{Name: "published and not done", Points: points, Color: figure.Orange(), Fill: figure.Pale(figure.Orange())},
	}}
}

func (p picture) replicas() figure.Panel {
	desired := p.steps(func(one mesh.Sample) int { return one.Desired })
	running := p.steps(func(one mesh.Sample) int { return one.Ready })
	return figure.Panel{YLabel: "replicas", Curves: []figure.Curve{
		{Name: "running", Points: running, Color: figure.Blue(), Fill: figure.Pale(figure.Blue())},
		{Name: "desired (spec.replicas)", Points: desired, Color: figure.Ink(), Dashes: []float64{5, 3}},
	}}
}

// steps has two points per change, so that the line is vertical there.
func (p picture) steps(pick func(mesh.Sample) int) plotter.XYs {
	end := p.begun.Add(p.length())
	var points plotter.XYs
	for _, one := range testbed.Between(p.timeline, p.begun, end) {
		x, y := one.Time.Sub(p.begun).Seconds(), float64(pick(one))
		if n := len(points); n > 0 {
			points = append(points, plotter.XY{X: x, Y: points[n-1].Y})
		}
		points = append(points, plotter.XY{X: x, Y: y})
	}
	return append(points, plotter.XY{X: p.length().Seconds(), Y: points[len(points)-1].Y})
}

// length is that of the time axis.
func (p picture) length() time.Duration {
	if len(p.samples) == 0 {
		return p.scenario.fall()
	}
	return p.samples[len(p.samples)-1].at
}
