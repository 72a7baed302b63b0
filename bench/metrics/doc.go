// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command metrics measures the duration of the GET of a metric on real parts: from kube-apiserver through its
// aggregator to the adapter, like the HorizontalPodAutoscaler controller, and for comparison directly to the adapter.
//
//	go run ./bench/metrics -out bench/out/metrics.json
//
// A client is like a worker of that controller: it sends a request, waits for the response, and sends the next, with
// the controller's service account and permissions, client-go, Protocol Buffers and one HTTP/2 connection for all. It
// has no limit of 20 requests/s, which the controller has, and does not repeat a request. The duration is from the call
// to the decoded response. The clients share the machine with the control plane, the broker and the adapter, so their
// cost is included.
//
//	main.go    flags, the order of steps, exit code
//	scene.go   one Function with a policy and a load, on a stage
//	client.go  the two routes to the adapter
//	measure.go concurrent clients
//	report.go  quantiles, table, JSON
//
// Layer 3. Any request without the metric in its response is an error, and any error is exit code 1. It judges no
// duration, and never measures an adapter that is not ready.
package main
