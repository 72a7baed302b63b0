// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// Timetable has the times at which our controller observed, from the beginning of the system: of a real adapter, in
// which polls of topics and of instances are independent with a jitter of 10 % each, and of a real HPA. Nothing happens
// after its end.
type Timetable struct {
	// Polls of Pulsar, Scrapes of the instances and Syncs of the HPA.
	Polls, Scrapes, Syncs []time.Duration
}

// At returns our controller with a timetable instead of its own phases. Like the real one it decides after each poll,
// of topics and of instances.
func At(t Timetable) New {
	return func(s model.Scenario) Controller {
		c := newCapacity(s)
		c.follows = true
		for kind, times := range [][]time.Duration{polled: t.Polls, scraped: t.Scrapes, synced: t.Syncs} {
			for _, at := range times {
				c.events = append(c.events, event{at: at, kind: eventKind(kind)})
			}
		}
		slices.SortStableFunc(c.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
		return c
	}
}

// event of a Timetable.
type event struct {
	at   time.Duration
	kind eventKind
}

type eventKind int

const (
	polled eventKind = iota
	scraped
	synced
)

// second at the end of which an event happens: the system has whole seconds.
func (e event) second() int { return int(math.Round(e.at.Seconds())) - 1 }

// follow processes the timetable up to the end of this second.
func (c *capacity) follow(system *model.System) int {
	replicas := system.Replicas()
	for len(c.events) > 0 && c.events[0].second() <= system.Second() {
		switch c.events[0].kind {
		case polled:
			c.ask(system)
			c.decide(system)
		case scraped:
			c.scrape(system)
			c.decide(system)
		case synced:
			replicas = c.desired
		}
		c.events = c.events[1:]
	}
	if system.Replicas() == 0 { // at 0 the HPA is off
		return c.desired
	}
	return replicas
}
