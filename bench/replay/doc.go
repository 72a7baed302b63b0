// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command replay holds the simulator against reality: it runs a few scenarios on real parts (a real Pulsar broker, a
// real Kubernetes control plane with its HPA controller, the adapter as a process at its default intervals, replicas
// that are Pulsar consumers or Pulsar's own Java function instances), measures what a replica does and how long it
// takes to start, gives these facts to the simulator, runs the same loads through the same policy there, and compares.
//
//	make bench-replay                             all scenarios, about 30 minutes
//	go run ./bench/replay -scenario step -seconds 120
//	go run ./bench/replay -again bench/out/replay.json   simulate anew what was run before
//
// When polls and syncs come decides as much about one run as the policy does. Therefore the adapter's counters are
// listened to, and the simulated polls, scrapes and syncs come when the real ones came, over the messages that really
// arrived; what is left to luck is drawn 30 times, and the mean is compared, with the extremes beside it. What comes of
// any other times is simulated too, to show how much of a run they are.
//
// Floor 3. It decides nothing, and judges only whether the two agree.
package main
