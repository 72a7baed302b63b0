// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package program runs a process that serves: until a signal, with the parts that requests depend on outliving the
// server. It keeps the memory below the container's limit, and has the log.
//
// Layer 3, part of the programs. It imports none of their parts.
package program
