// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command policies measures what many policies at once cost a real control plane: how long it takes until each has its
// HorizontalPodAutoscaler when all are created at the same time, and how many statuses are written a second after that,
// under a load that keeps changing.
//
//	go run ./bench/policies -out bench/out/policies.json
//
// The API server, etcd, the HorizontalPodAutoscaler controller and the adapter are real and run as they ship. Pulsar is
// not: package fake answers as its admin service does, about one topic for each Function. Its publish rate swings
// by up to 80 % and its replicas do 25 messages a second each. Nor is Function Mesh: the status of a Function follows
// its spec at once, and there are no pods.
//
//	main.go    flags, the order of things
//	load.go    how much is published and processed
//	scene.go   Functions and policies, and what follows their changes
//	count.go   counting what the API server was told, by watching it
//	report.go  budget, table, JSON
//
// Floor 3. It judges no duration but says beside each what it should be; the budget is derived in report.go.
package main
