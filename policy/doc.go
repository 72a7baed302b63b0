// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy decides. What was gathered goes in as values, what to do comes out as values: Decide turns a reading
// into a number of replicas and says why, Check finds what the user must mend first, HorizontalPodAutoscaler and Status
// say what to write.
//
// Floor 1: it knows the API, package backlog and the Kubernetes types. It never reads a clock, speaks to a server,
// logs, or starts a goroutine; the same input always gives the same answer, so every decision can be replayed.
package policy
