// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package load makes a load on Pulsar and measures how long its messages take, from when each one was due.
//
// A Shape, as a scenario file has it, becomes a Schedule, which alone says when each message is due: the load is
// open-loop, and equal seeds give equal loads. Nothing here waits for the system that is measured, so that its stalls
// count (no coordinated omission).
//
// Floor 3, used by benchmarks and by the plugin. It knows Pulsar, and neither Kubernetes nor autoscalers.
package load
