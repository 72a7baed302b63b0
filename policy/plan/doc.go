// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan says what to write for a policy. Observed is what was read about it. Check finds what the user has to
// fix first, New lists the writes that carry out a decision, and Status is the status that reports them. NextSuspension
// and Restore plan what becomes of conflicting autoscalers; Published is the decision as autoscalers are served it.
//
// Floor 1: it knows the API, packages backlog and policy, and the Kubernetes types. It never reads a clock, speaks to a
// server, logs, or starts a goroutine; the same input always gives the same plan.
package plan
