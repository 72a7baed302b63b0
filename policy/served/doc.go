// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package served is what autoscalers read of a policy's status: the desired replicas, when they were measured, and the
// reason if there are none. The metrics API and the external scaler import it, and not package plan.
//
// Layer 1: it knows the API and package policy. It never reads a clock, speaks to a server, logs, or starts a
// goroutine. Everything is in served.go: Desired first, then the age up to which a decision is served.
package served
