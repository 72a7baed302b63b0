// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package scenario reads a benchmark's file: the load, the Function, the contenders that scale it, and the limits.
// Unknown keys are errors, defaults are set, and errors name the field and its valid values.
//
// Layer 3, used by benchmarks and by the plugin. It needs no cluster.
package scenario
