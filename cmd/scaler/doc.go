// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command scaler is an external scaler for KEDA: it serves the decision for an AutoscalingPolicy, or signals that it
// measures of a function or a subscription itself.
//
// Layer 3, wiring: it turns flags into configurations, starts the parts and stops them. It never decides, writes
// nothing to Kubernetes but its certificates, and elects no leader: every replica serves everything.
//
//	options.go       flags and their bounds
//	certificate.go   TLS between KEDA and the scaler
//	scaler.go        the parts, wired, run and stopped, with /metrics and probes
//	signals.go       from the subject of a trigger to its reading
package main
