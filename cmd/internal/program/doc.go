// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package program is the life of a process that serves: it runs until a signal, and what its answers rest on outlives
// its server. Its memory stays below the container's limit.
//
// Floor 3, part of the programs. It knows no part of them.
package program
