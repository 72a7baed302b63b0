// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package registries makes one /metrics of several registries.
//
// Floor 3, part of the programs. It counts nothing itself, and never drops a series that only one registry has.
package registries
