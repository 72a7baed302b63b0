// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package load publishes a load to Pulsar and measures the latency of its messages, from when each one was due.
//
// A Shape, as in a scenario file, becomes a Schedule, which alone determines when each message is due: the load is
// open-loop, and equal seeds give equal loads. Nothing here waits for the measured system, so that its stalls count (no
// coordinated omission).
//
// Layer 3, used by benchmarks and by the plugin. It knows Pulsar, and neither Kubernetes nor autoscalers.
package load
