// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package fake replaces Pulsar's admin service and Function Mesh if a benchmark needs hundreds of Functions and no
// messages: its responses were recorded of Pulsar 4.0.8 and get the counts of a Load, and the status of a Function
// follows its spec at once. There are no pods.
//
// Layer 3, used by benchmarks. The caller sets how much is published and processed.
package fake
