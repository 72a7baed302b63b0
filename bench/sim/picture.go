// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/suite"
)

// picture shows one load under a few controllers.
type picture struct {
	scenario suite.Scenario
	runs     []outcome
}

// plotSet writes a page of each scenario of a set, of held-out ones only if -scenario selects them.
func plotSet(s set, runs []outcome, o options) error {
	if o.plots == "" || s.name == heldOutName && o.scenario.String() == "" {
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

// page begins with ours, or else with the first run.
func (p picture) page() page.Page {
	runs := slices.Clone(p.runs)
	slices.SortStableFunc(runs, func(a, b outcome) int { return rank(a) - rank(b) })
	s := p.scenario
	load := make([]float64, s.Seconds+1)
	for second := range load {
		load[second] = max(0, s.Rate(float64(second)))
	}
	var courses []page.Course
	scatter := page.Costs()
	for _, r := range runs {
		courses = append(courses, page.Course{
			Name: r.controller, Replicas: r.replicas, Oldest: r.oldest, Backlog: r.backlog,
		})
		if r.lateShare.known { // there were messages
			scatter.Add(r.controller, r.replicaSeconds/time.Hour.Seconds(), r.lateShare.value)
		}
	}
	objective := s.Objective.Seconds()
	ours, last := runs[0], runs[len(runs)-1]
	verdict := "no messages"
	if ours.lateShare.known && len(runs) > 1 {
		verdict = output.Verdict(objective, ours.lateShare.value, ours.replicaSeconds, last.replicaSeconds,
			last.controller)
	} else if ours.lateShare.known {
		verdict = output.Verdict(objective, ours.lateShare.value, ours.replicaSeconds, 0, "")
	}
	return page.Page{
		Title: s.Name + ": " + verdict, Scatter: scatter,
		Charts: page.Courses(time.Time{}, load, objective, courses),
		Summary: fmt.Sprintf("A replica processes %.4g messages/s and starts in %.0f s. One run of luck, simulated.",
			s.Capacity(0), s.Start.Seconds()),
	}
}

// rank is the place of a run on the page: ours, the measure, and what ours is compared with.
func rank(r outcome) int {
	switch r.controller {
	case capacityName:
		return 0
	case oracleName:
		return 1
	default:
		return 2
	}
}
