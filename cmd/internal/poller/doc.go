// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package poller is how a program measures: the flags for Pulsar and for polling, and the clients of Pulsar and of
// instances with the poller that drives them.
//
// Floor 3, part of the programs. It never decides, and does not know what the readings are for.
//
//	options.go, validate.go, derive.go   sections "Pulsar" and "Measuring" of the flags, and their bounds
//	poller.go                            flags -> clients -> poller
//	metrics.go                           topics, late fetches and second looks
//	instances.go                         where the instances of a workload are requested
package poller
