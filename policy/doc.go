// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy decides how many replicas to run. Decide takes a reading and the state of the last decision, and
// returns the replicas, the reasons and the next state. Encode and Resume carry the state from one process to the next.
//
// Floor 1: it knows the API and package backlog. It never reads a clock, speaks to a server, logs, or starts a
// goroutine. The same input always gives the same decision, so every decision can be replayed.
package policy
