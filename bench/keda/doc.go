// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command keda compares this autoscaler with KEDA's built-in pulsar scaler in two situations that scenarios of kubectl
// pap bench run do not have: a broken Pulsar, and hundreds of Functions. All contenders run at once on a control plane
// with real KEDA. For the same load on each, see examples/bench/keda.yaml.
//
//	go run ./bench/keda -out bench/out/keda.json
//
// Two parts, selected by -parts:
//
//	outage  the broker's admin service stops answering while there is a backlog, of several Functions each, with a real
//	        broker and real consumers.
//	burst   300 ScaledObjects of each contender, on a control plane of its own, get work at the same moment; Pulsar and
//	        Function Mesh are package fake's, and there are no pods.
//
// Contenders:
//
//	ours                 an AutoscalingPolicy with actuator KEDA
//	keda_pulsar          KEDA's pulsar scaler with the threshold of an expert who knows what a replica can do
//	keda_external_push   a ScaledObject of the user's with our scaler by push, no policy, and the same threshold
//	keda_external_pull   the same by pull (part burst only)
//
//	main.go         the order of things
//	options.go      flags
//	contender.go    the contenders and their objects
//	environment.go  control plane, KEDA, scaler, broker, and the proxy before its admin service
//	outage.go, burst.go  the parts
//	crowd.go        Functions that wake
//	account.go      what followed from timelines of replicas, and from waits
//	report.go       table and JSON
//
// Layer 3. It judges nothing.
package main
