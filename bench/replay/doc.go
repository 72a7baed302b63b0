// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command replay holds the simulator against reality: it runs a few scenarios on real parts (a real Pulsar broker, a real
// Kubernetes control plane with its HPA controller, the adapter as a process at its default intervals, replicas that are
// Pulsar consumers or Pulsar's own Java function instances), measures what a replica does and how long it takes to start,
// gives these facts to the simulator, runs the same loads through the same policy there, and compares.
//
//	make bench-replay                             all scenarios, about 30 minutes
//	go run ./bench/replay -scenario step -seconds 120
//	go run ./bench/replay -again bench/out/replay.json   simulate anew what was run before
//
// A real run has one phase of the adapter's polls against the HPA's syncs and the load; the simulator runs all of them,
// and the mean is compared, with the extremes beside it.
//
// Floor 3. It decides nothing, and judges only whether the two agree.
package main
