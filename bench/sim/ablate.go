// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/baseline"
)

// variant is our controller without some parts of its algorithm.
type variant struct {
	name  string
	parts []baseline.Part
}

func (v variant) controller() string { return capacityName + " without " + v.name }

// parseVariants parses names separated by commas; + joins parts that are left out together.
func parseVariants(text string) ([]variant, error) {
	if text == "" {
		return nil, nil
	}
	names := strings.Split(text, ",")
	if text == "all" {
		names = partNames()
	}
	var variants []variant
	for _, name := range names {
		v := variant{name: strings.TrimSpace(name)}
		for part := range strings.SplitSeq(v.name, "+") {
			one, err := parsePart(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			v.parts = append(v.parts, one)
		}
		if slices.ContainsFunc(variants, func(other variant) bool { return other.name == v.name }) {
			return nil, fmt.Errorf("%q is there twice: name each once", v.name)
		}
		variants = append(variants, v)
	}
	return variants, nil
}

// worth is the effect of a part on a set: the numbers without it over those with it, or minus them, scenario by
// scenario.
type worth struct {
	part    string
	changes []change
	// same means that all numbers of all scenarios are equal: the part has no effect.
	same bool
}

// change of one number: higher is worse.
type change struct {
	by     quantity
	within interval
	// none is the value of no change.
	none   float64
	format string
}

// worths of the parts, with bootstrap intervals over pairs of scenarios.
func (s summary) worths(variants []variant, seed uint64) []worth {
	with, ok := s.find(capacityName)
	if !ok {
		return nil
	}
	over := func(without, with numbers) quantity { return without.CostOverOracle.over(with.CostOverOracle) }
	minus := func(pick func(numbers) quantity) func(without, with numbers) quantity {
		return func(without, with numbers) quantity { return pick(without).minus(pick(with)) }
	}
	var worths []worth
	for _, v := range variants {
		without, ok := s.find(v.controller())
		if !ok || len(without.scenarios) != len(with.scenarios) {
			continue
		}
		one := worth{part: v.name, same: slices.Equal(without.scenarios, with.scenarios)}
		for _, c := range []struct {
			pair   func(without, with numbers) quantity
			by     fold
			none   float64
			format string
		}{
			{over, geometric, 1, "%.3f"},
			{minus(func(n numbers) quantity { return n.AvoidableLate }), mean, 0, "%+.2f"},
			{minus(func(n numbers) quantity { return n.Actions }), mean, 0, "%+.2f"},
			{minus(func(n numbers) quantity { return n.Flaps }), mean, 0, "%+.2f"},
		} {
			pairs := make([]quantity, len(with.scenarios))
			for i := range pairs {
				pairs[i] = c.pair(without.scenarios[i].numbers, with.scenarios[i].numbers)
			}
			one.changes = append(one.changes, change{c.by(pairs), bootstrap(pairs, c.by, seed), c.none, c.format})
		}
		worths = append(worths, one)
	}
	return worths
}

// verdict returns whether a part is worth keeping: without it, something is significantly worse and nothing
// significantly better.
func (w worth) verdict() string {
	worse, better := false, false
	for _, c := range w.changes {
		worse, better = worse || c.within.above(c.none), better || c.within.below(c.none)
	}
	switch {
	case w.same:
		return "no run differs"
	case worse && better:
		return "a trade"
	case worse:
		return "pays"
	case better:
		return "costs"
	default:
		return "not seen"
	}
}

func worthRows(worths []worth) [][]string {
	rows := [][]string{{
		"without", "cost x", "95 %", "avoidable pp", "95 %", "actions", "95 %", "flaps", "95 %",
		"the part",
	}}
	for _, w := range worths {
		row := []string{w.part}
		for _, c := range w.changes {
			row = append(row, c.by.text(c.format), c.within.text(c.format))
		}
		rows = append(rows, append(row, w.verdict()))
	}
	return rows
}
