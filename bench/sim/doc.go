// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command sim compares controllers on simulated load: the named suite, held-out scenarios drawn from the seed on the
// command line, or a load that was recorded (-trace). It prints a table of each set, can leave parts of our algorithm
// out (-ablate), draws plots (-plots) and writes its numbers as JSON (-out). -h has all flags.
//
//	main.go         the order of things, exit code
//	options.go      the command line
//	run.go          every controller meets every scenario
//	recorded.go     the scenario of a trace
//	performance.go  scores of scenarios and sets
//	quantity.go     numbers that may be unknown, means, intervals
//	table.go, json.go, goals.go, ablate.go, picture.go: what is made of them
//
// The JSON is the same, byte for byte, for equal seeds. What is unknown is null:
//
//	{"seed": 7, "seeds": 3,
//	 "controllers": {"capacity": {
//	   "cost_over_oracle": replica-seconds over the oracle's, geometric mean of the scenarios,
//	   "late_pct": messages later than the objective, in per cent, mean,
//	   "avoidable_late_pp": percentage points of that above the oracle's, mean,
//	   "flaps": times up within ten minutes of down, "actions": changes of the number of replicas, sums,
//	   "settle_seconds": after a step of the load until replicas stay, mean,
//	   "scenarios": {"held-out-000": the same keys, ...}}, ...},
//	 "sets": {"suite": {"capacity": {..., "scenarios": {"step": {...}}}}, "held-out": {...}},
//	 "goals": {"held-out": {"cost/oracle": {"at_most": 1.15, "strict": false, "measured": 1.1, "met": true}, ...}}}
//
// The controllers at the top are scored on the held-out set, which no controller was tuned on, and are none when it was
// not run; their scenarios are those of all sets, of which no two have one name. In sets each set has its own scores,
// and more keys: cost_over_lower_bound (of what the load needs at the least), violation_seconds (the oldest message was
// late), unsettled_pct and steps_after_load_step (of steps of the load), false_ceilings (drawn while the limit of what
// replicas depend on was not reached, in all runs; null for controllers that draw none), and the 95 % bootstrap
// intervals over scenarios cost_over_oracle_95 and avoidable_late_pp_95. With -seeds every other number of a scenario
// is a mean of its runs.
//
// Its numbers are about a model. Three of its scenarios are replayed on real parts elsewhere, and the model's constants
// are those that were measured there.
//
// Floor 3. It decides nothing: controllers are in package baseline, the model in package model.
package main
