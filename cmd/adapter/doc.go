// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command adapter scales Pulsar Functions on Kubernetes: it reads subscriptions from Pulsar, decides replicas for every
// AutoscalingPolicy, and serves signals and decisions as the Kubernetes custom metrics API.
//
// Layer 3, wiring: it turns flags into configurations, starts the parts and stops them. It never decides, and has no
// rule about backlog or replicas.
//
//	options.go       flags and their bounds
//	server.go        the metrics API server with its probes
//	certificate.go   its serving certificate
package main
