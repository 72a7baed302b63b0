// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package logs configures the log of a program and of its libraries.
//
// Layer 3, part of the programs. It sets the format and level of lines, and never writes one.
package logs
