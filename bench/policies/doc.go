// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command policies measures the cost of many policies on a real control plane: how long 300 policies created at once
// take to get their HorizontalPodAutoscalers, and how many status writes per second follow under a load that keeps
// changing.
//
//	go run ./bench/policies -out bench/out/policies.json
//
// The API server, etcd, the HorizontalPodAutoscaler controller and the adapter are real and run as shipped. Package
// fake replaces Pulsar: it responds as the admin service does, with one topic for each Function. Its publish rate
// varies by up to 80 %, and a replica processes 25 messages a second. It also replaces Function Mesh: the status of a
// Function follows its spec at once, and there are no pods.
//
//	main.go    flags, the order of things
//	scene.go   Functions, their load and policies, and what follows their changes
//	count.go   counting what the API server was told, by watching it
//	report.go  budget, table, JSON
//
// Layer 3. It does not judge durations, but prints the goal of each; report.go has the budget.
package main
