// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package fake stands in for Pulsar's admin service and for Function Mesh where a benchmark needs hundreds of
// Functions and no messages: the answers have what a decision may rest on, and the status of a Function follows its
// spec at once. There are no pods.
//
// Floor 3, used by benchmarks. How much is published and processed is its caller's.
package fake
