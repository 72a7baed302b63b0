// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command replay compares the simulator with reality. It runs a few scenarios on real parts (a real Pulsar broker, a
// real Kubernetes control plane with its HPA controller, the adapter as a process at its default intervals, replicas
// that are Pulsar consumers or Pulsar's own Java function instances), measures the capacity and the start time of a
// replica, and simulates the same loads with the same policy and these measurements.
//
//	make bench-replay                             all scenarios, about 30 minutes
//	go run ./bench/replay -scenario step -seconds 120
//	go run ./bench/replay -again bench/out/replay.json   repeat the simulations of an earlier report
//
// The times of polls and syncs influence a run as much as the policy does. Therefore the simulated polls, scrapes and
// syncs happen at the times of the real ones, as seen in the adapter's counters, with the messages that really arrived.
// Other random values are drawn 30 times, and the report compares the mean and has the extremes. It also has
// simulations at random poll and sync times, which show how much of a result depends on them.
//
// Layer 3. It decides nothing, and judges only whether the two agree.
package main
