// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package testbed is common to all benchmarks on real parts: it opens and watches a stage, and reads what the adapter
// says.
//
// Layer 3, used by benchmarks. It measures nothing itself.
package testbed
