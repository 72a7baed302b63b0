// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package series lists the metrics that a program registers, for docs/metrics.md and the tests that compare it.
//
// Layer 3, for tests. It reads descriptors, and needs no sample of a metric to list it.
package series
