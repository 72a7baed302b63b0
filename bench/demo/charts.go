// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
)

func (s summary) charts() []page.Chart {
	backlog := page.Series{Name: "published and not processed"}
	latency := page.Series{Name: "median latency"}
	for _, one := range s.Samples {
		backlog.Seconds = append(backlog.Seconds, one.Seconds)
		backlog.Values = append(backlog.Values, new(float64(max(0, one.Published-one.Done))))
		latency.Seconds, latency.Values = append(latency.Seconds, one.Seconds), append(latency.Values, one.LatencySeconds)
	}
	return []page.Chart{
		{Title: "Load", Unit: "messages/s", Series: []page.Series{
			s.rate("processed", func(one point) int64 { return one.Done }),
			s.rate("published", func(one point) int64 { return one.Published }),
		}},
		{Title: "Backlog", Unit: "messages", Series: []page.Series{backlog}},
		{Title: "Replicas", Series: []page.Series{
			s.steps("running", func(one step) int { return one.Running }),
			s.steps("desired (spec.replicas)", func(one step) int { return one.Desired }),
		}},
		{
			Title: "Median latency of each second", Unit: "s", Objective: &s.ObjectiveSeconds,
			Series: []page.Series{latency},
		},
	}
}

func (s summary) rate(name string, pick func(point) int64) page.Series {
	var seconds, counts []float64
	for _, one := range s.Samples {
		seconds, counts = append(seconds, one.Seconds), append(counts, float64(pick(one)))
	}
	return page.Rate(name, seconds, counts)
}

// steps is the history of a number of replicas up to the end of the time axis.
func (s summary) steps(name string, pick func(step) int) page.Series {
	series := page.Series{Name: name, Step: true}
	add := func(seconds float64, one step) {
		series.Seconds, series.Values = append(series.Seconds, seconds), append(series.Values, new(float64(pick(one))))
	}
	for _, one := range s.Replicas {
		add(one.Seconds, one)
	}
	if n := len(s.Samples); n > 0 && len(s.Replicas) > 0 {
		add(s.Samples[n-1].Seconds, s.Replicas[len(s.Replicas)-1])
	}
	return series
}
