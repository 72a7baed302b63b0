// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command metrics measures how long the GET of a metric takes on real parts: from kube-apiserver through its aggregator
// to the adapter, as the HorizontalPodAutoscaler controller asks, and for contrast straight to the adapter.
//
//	go run ./bench/metrics -out bench/out/metrics.json
//
// A client here is what a worker of that controller is: it asks, waits for the answer, and asks again, with the
// controller's service account and rights, client-go, Protocol Buffers and one HTTP/2 connection for all. It has no
// limit of 20 requests/s, which the controller has, and does not repeat a request. What is measured is from the call to
// the decoded answer. The clients share the machine with the control plane, the broker and the adapter, so what they
// cost is in the numbers.
//
//	main.go    flags, the order of things, exit code
//	scene.go   one Function with a policy and a load, on a stage
//	client.go  the two routes to the adapter
//	measure.go clients that ask at the same time
//	report.go  quantiles, table, JSON
//
// Floor 3. Any request that is not answered with the metric is an error, and any error is exit code 1. It judges no
// duration, and never measures an adapter that has nothing to say yet.
package main
