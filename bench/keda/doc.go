// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command keda measures this autoscaler's work with KEDA beside KEDA's built-in pulsar scaler, in one run on one
// control plane, with real KEDA, a real broker and real consumers.
//
//	go run ./bench/keda -out bench/out/keda.json
//
// Three parts, of which -parts takes some:
//
//	beside  the same load for each contender's Function at the same time, from zero: a step, and the step again when all
//	        are back at zero. The second counts: by then the policy has learned what a replica can do, and the threshold
//	        of the tuned contender is that of an expert. The first is in the numbers too.
//	outage  the broker's admin service stops answering while there is a backlog, of several Functions each.
//	burst   300 ScaledObjects of each contender, on a control plane of its own, get work at the same moment; Pulsar and
//	        Function Mesh are package fake's, and there are no pods.
//
// Contenders:
//
//	ours                 an AutoscalingPolicy with actuator KEDA
//	keda_pulsar          KEDA's pulsar scaler with the threshold of an expert who knows what a replica can do
//	keda_pulsar_default  the same with KEDA's default of 10 messages (part beside only)
//	keda_external_push   a ScaledObject of the user's with our scaler by push, no policy, and the same threshold
//	keda_external_pull   the same by pull (part burst only)
//
//	main.go         the order of things
//	options.go      flags
//	contender.go    the contenders and their objects
//	environment.go  control plane, KEDA, scaler, broker
//	proxy.go        counts what the broker's admin service is asked, for each contender, and hangs
//	beside.go, outage.go, burst.go  the parts
//	crowd.go        Functions that wake
//	account.go      what followed from a timeline of replicas
//	report.go       table and JSON
//
// Floor 3. It judges nothing.
package main
