// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
)

// rateWindow averages out the jitter of a busy machine.
const rateWindow = 3 * time.Second

// picture is the content of the page.
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

func (p picture) rates() page.Chart {
	return page.Chart{Title: "Load", Unit: "messages/s", Series: []page.Series{
		p.rate("published", func(one sample) int64 { return one.published }),
		p.rate("done", func(one sample) int64 { return one.done }),
	}}
}

// rate is the mean growth of a count over rateWindow, at the middle of that window.
func (p picture) rate(name string, pick func(sample) int64) page.Series {
	samples := append([]sample{{}}, p.samples...) // both counts start at 0
	s := page.Series{Name: name}
	first := 0
	for i, one := range samples {
		for first < i && one.at-samples[first+1].at >= rateWindow {
			first++
		}
		if elapsed := (one.at - samples[first].at).Seconds(); elapsed > 0 {
			s.Seconds = append(s.Seconds, (one.at+samples[first].at).Seconds()/2)
			s.Values = append(s.Values, new(float64(pick(one)-pick(samples[first]))/elapsed))
		}
	}
	return s
}

func (p picture) backlog() page.Chart {
	s := page.Series{Name: "published and not done"}
	for _, one := range p.samples {
		s.Seconds, s.Values = append(s.Seconds, one.at.Seconds()), append(s.Values, new(float64(one.backlog())))
	}
	return page.Chart{Title: "Backlog", Unit: "messages", Series: []page.Series{s}}
}

func (p picture) replicas() page.Chart {
	return page.Chart{Title: "Replicas", Series: []page.Series{
		p.steps("running", func(one mesh.Sample) int { return one.Ready }),
		p.steps("desired (spec.replicas)", func(one mesh.Sample) int { return one.Desired }),
	}}
}

// steps is the history of a number of replicas up to the end of the time axis.
func (p picture) steps(name string, pick func(mesh.Sample) int) page.Series {
	s := page.Series{Name: name, Step: true}
	add := func(seconds float64, one mesh.Sample) {
		s.Seconds, s.Values = append(s.Seconds, seconds), append(s.Values, new(float64(pick(one))))
	}
	lived := testbed.Between(p.timeline, p.begun, p.begun.Add(p.length()))
	for _, one := range lived {
		add(one.Time.Sub(p.begun).Seconds(), one)
	}
	add(p.length().Seconds(), lived[len(lived)-1])
	return s
}

// length is that of the time axis.
func (p picture) length() time.Duration {
	if len(p.samples) == 0 {
		return p.scenario.fall()
	}
	return p.samples[len(p.samples)-1].at
}
