// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package registries merges several registries into one /metrics.
//
// Layer 3, part of the programs. It counts nothing itself, and never drops a series that only one registry has.
package registries
