// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// document is the JSON output.
type document struct {
	OS           string    `json:"os"`
	Architecture string    `json:"architecture"`
	CPU          string    `json:"cpu"`
	Benchmarks   []summary `json:"benchmarks"`
}

// summary of one benchmark. Units are named as "go test" prints them, such as ns/op, B/op and allocs/op.
type summary struct {
	Package string            `json:"package"`
	Name    string            `json:"name"`
	Samples int               `json:"samples"`
	Units   map[string]spread `json:"units"`
}

// spread of the samples in one unit.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func summarize(o output) document {
	d := document{OS: o.machine.goos, Architecture: o.machine.goarch, CPU: o.machine.cpu}
	for _, s := range o.benchmarks {
		units := make(map[string]spread, len(s.byUnit))
		for unit, values := range s.byUnit {
			units[unit] = spreadOf(values)
		}
		d.Benchmarks = append(d.Benchmarks, summary{Package: s.pkg, Name: s.name, Samples: s.runs, Units: units})
	}
	return d
}

// spreadOf needs at least one value; the median of an even number of values is the mean of the middle two.
func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	upper := len(sorted) / 2
	median := sorted[upper]
	if len(sorted)%2 == 0 {
		median = mean(sorted[upper-1], sorted[upper])
	}
	return spread{Median: median, Min: sorted[0], Max: sorted[len(sorted)-1]}
}

// mean of a <= b, without overflow and never outside of their range.
func mean(a, b float64) float64 {
	if (a < 0) != (b < 0) {
		return (a + b) / 2
	}
	return a + (b-a)/2
}
