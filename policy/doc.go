// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy decides. Decide turns a reading, and the state that the last decision left, into a number of replicas,
// the reasons for it and the next state. Encode and Resume carry the state from one process to the next.
//
// Floor 1: it knows the API and package backlog. It never reads a clock, speaks to a server, logs, or starts a
// goroutine; the same input always gives the same decision, so every decision can be replayed.
package policy
