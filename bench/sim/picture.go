// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/suite"
)

// picture shows one load under a few controllers.
type picture struct {
	scenario suite.Scenario
	runs     []outcome
}

// plotSet writes a page of each scenario of a set, of its runs with the first seed.
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
		if err := p.page().File(filepath.Join(o.plots, scenario.Name+".html")); err != nil {
			return fmt.Errorf("plotting %s: %w", scenario.Name, err)
		}
	}
	return nil
}

func (p picture) page() page.Page {
	late := make([]string, len(p.runs))
	replicas := page.Chart{Title: "Replicas", Series: []page.Series{page.EachSecond("load / capacity", p.need())}}
	ages := page.Chart{Title: "Age of the oldest message", Unit: "s"}
	for i, r := range p.runs {
		late[i] = r.controller + " " + r.lateShare.percent().text("%.2f") + " %"
		requested := page.EachSecond(r.controller, r.replicas)
		requested.Step = true
		replicas.Series = append(replicas.Series, requested)
		ages.Series = append(ages.Series, page.EachSecond(r.controller, r.oldest))
	}
	s := p.scenario
	objective := s.Objective.Seconds()
	ages.Series = append(ages.Series, page.Series{
		Name: "objective", Seconds: []float64{0, float64(s.Seconds)}, Values: page.Known(objective, objective),
	})
	return page.Page{
		Title: s.Name + ": replicas and how long messages wait",
		Summary: fmt.Sprintf(
			"A replica processes %.4g messages/s and starts in %.0f s. Messages later than %.0f s: %s. One run of luck.",
			s.Capacity(0), s.Start.Seconds(), objective, strings.Join(late, ", ")),
		Charts: []page.Chart{replicas, ages},
	}
}

// need is the number of replicas that the load keeps busy in each second. Beyond the maximum of the scenario, to which
// it is cut, it would only flatten the other curves.
func (p picture) need() []float64 {
	need := make([]float64, p.scenario.Seconds+1)
	for second := range need {
		at := float64(second)
		need[second] = min(float64(p.scenario.Max), max(0, p.scenario.Rate(at))/p.scenario.Capacity(at))
	}
	return need
}
