// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command scale measures the cost of the adapter itself with 1,000 to 10,000 policies: its memory, CPU and requests,
// how old readings and decisions are, and how long a start and a fail-over take.
//
//	go run ./bench/scale -policies 1000,5000 -out bench/out/scale.json
//	go run ./bench/scale -policies 2000 -pods 0 -burst 200 -out bench/out/burst.json
//
// The API server, etcd, the HorizontalPodAutoscaler controller and the adapter are real; the adapter has its shipped
// flags. Package fake replaces Pulsar (10 brokers) and Function Mesh. Each policy has a Function, a StatefulSet and 10
// pods, which follow its replicas, from minReplicas to twice as many. No kubelet runs the pods: they are Running and
// Ready, and with -scrape their counters are read too. In each minute a tenth of the policies change: the load by up to
// a third, or a pod is replaced.
//
//	main.go     flags, the order of things
//	scene.go    Functions with load, StatefulSets, pods and policies, and their changes
//	burst.go    how long decisions of many policies at once wait for the HorizontalPodAutoscaler controller
//	series.go   what /metrics of the adapter says
//	report.go   rows, table, JSON
//
// CPU is the time of the process, so it holds beside other work, too. Ages are of the series of --policy-metrics=Full,
// which the shipped flags leave out: a second replica has them after it took over.
//
// Layer 3. It does not judge the numbers.
package main
