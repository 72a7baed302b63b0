// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package poller wires the poller of a program: the flags for Pulsar and for polling, and the clients of Pulsar and of
// instances.
//
// Layer 3, part of the programs. It never decides, and does not know what the readings are for.
//
//	options.go   sections "Pulsar" and "Measuring" of the flags, and their bounds
//	poller.go    flags -> clients -> poller, and requests to instances in pods or at function workers
//	metrics.go   topics, late fetches and repeated fetches
package poller
