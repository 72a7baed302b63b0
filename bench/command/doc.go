// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package command is the main function of all benchmarks: flags, signals and the exit code.
//
// Layer 3, used by benchmarks. It imports only the standard library, so that it adds nothing to a process that measures
// its own memory.
package command
