// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command sim compares controllers on simulated load: the named suite, held-out scenarios and loads that return, both
// drawn from the seed on the command line, recorded loads (-traces), or the messages of runs on real parts (-replay).
// It prints a table of each set, can leave out parts of our algorithm (-ablate), and writes pages with charts (-plots)
// and its numbers as JSON (-out). -h has all flags.
//
//	main.go         the order of steps, exit code
//	options.go      the command line
//	run.go          runs every controller on every scenario
//	traces.go       episodes of many traces, and tracerows.go what is written of them
//	replay.go       real runs of kubectl pap bench run --local beside simulated ones (replaysim.go)
//	performance.go  scores of scenarios and sets
//	quantity.go     numbers that may be unknown, means, intervals
//	table.go, json.go, ablate.go, picture.go: outputs
//
// The JSON is byte for byte the same for equal seeds. Unknown is null:
//
//	{"seed": 7, "seeds": 3,
//	 "controllers": {"capacity": {
//	   "cost_over_oracle": replica-seconds over the oracle's, geometric mean of the scenarios,
//	   "late_pct": messages later than the objective, in per cent, mean,
//	   "avoidable_late_pp": percentage points of that above the oracle's, mean,
//	   "flaps": scale-ups within ten minutes of a scale-down, "actions": changes of the number of replicas, sums,
//	   "settle_seconds": after a step of the load until replicas stay, mean,
//	   "scenarios": {"held-out-000": the same keys and "family": the name of its set, ...}}, ...},
//	 "sets": {"suite": {"capacity": {..., "scenarios": {"step": {...}}}}, "held-out": {...}, "patterns": {...},
//	          "adversarial": {...}}}
//
// The controllers at the top are scored on the held-out set, on which no controller was tuned, and are empty without
// it; their scenarios are those of all sets, and no two have one name. In sets each set has its own scores, and more
// keys: unsettled_pct (of steps of the load), false_ceilings (drawn while no downstream limit was reached, in all runs;
// null for controllers without ceilings), redelivered_per_ended_replica (messages that a replica held when it was
// removed or its container ended, mean; null if none was), and the 95 % bootstrap intervals over scenarios
// cost_over_oracle_95 and avoidable_late_pp_95. With -seeds every other number of a scenario is a mean of its runs.
//
// With -traces it is a list of {"trace", "setting", "controller", "cost_over_oracle", "avoidable_late_pp", "changes"}:
// the geometric mean, the mean and the sum over the episodes of a trace.
//
// With -replay it is a list of {"name", "contender", "setting", "real", "sim", "sim_low", "sim_high"} with
// replica_hours, late_pct, actions and max_replicas of the real run, and the mean and the extremes of 30 simulated ones
// with the same messages. Those of a pipeline are of all its stages.
//
// Its numbers are about a model. Other benchmarks replay three of its scenarios on real parts, and the model's
// constants were measured there.
//
// Layer 3. It decides nothing: controllers are in packages baseline and rival, the model in package model.
package main
