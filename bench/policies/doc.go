// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command policies measures many autoscalers at once on a real control plane: how long 300 policies that are created at
// once take to get their HorizontalPodAutoscalers, and how long their Functions, which are at zero, take to wake when
// all of them get messages at the same moment. With -contenders it does the same with policies of other actuators, with
// --wake-by-push, and with KEDA's own pulsar scaler.
//
//	go run ./bench/policies -out bench/out/policies.json
//	go run ./bench/policies -contenders direct,direct_push -out bench/out/push.json    4 minutes
//	go run ./bench/policies -contenders ours,ours_push,keda_pulsar -out bench/out/keda.json    on real KEDA, 18 minutes
//
// The API server, etcd, the HorizontalPodAutoscaler controller, the adapter, KEDA and Pulsar are real and run as
// shipped; each Function has one topic. Package fake replaces Function Mesh: the status of a Function follows its spec
// after 5 s, and there are no pods, so that no message is processed.
//
//	main.go       flags, the order of things
//	contender.go  the objects of contenders, and when they are ready
//	crowd.go      the Functions, and what the API server was told about them
//	topics.go     the broker with the topics
//	report.go     table, JSON
//
// Layer 3. It does not judge durations, but prints the goal of policies. What many policies cost is in bench/scale.
package main
