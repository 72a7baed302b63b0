// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command replay compares the simulator with reality. The real half is kubectl pap bench run --local: a real Pulsar
// broker, a real control plane with its HPA controller, the adapter as it ships, KEDA, and replicas that are Pulsar
// consumers. This command simulates each contender of those scenarios with the same messages, and compares
// replica-hours and late messages. Those of a pipeline are of all its stages.
//
//	make bench-replay                         five scenarios, about 55 minutes
//	go run ./bench/replay -results bench/out/replay -scenarios examples/bench/step.yaml
//
// When polls and syncs happen influences a run as much as the policy does, and a real run does not tell it. So each
// contender is simulated 30 times, and the load begins a second later each time: 30 s have all phases of polls of 10 s
// and syncs of 15 s. The report has the mean and the extremes.
//
//	main.go      the command line, and reading scenarios with their results
//	simulate.go  the simulations of a contender
//	report.go    differences, goals, table and JSON
//
// Layer 3. It decides nothing, and judges only whether the two agree.
package main
