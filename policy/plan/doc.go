// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan lists the writes for a policy. Observed is what the controller read about the policy. Check finds what
// the user has to fix first, New lists the writes that carry out a decision, and Status reports them. NextSuspension
// and Restore handle conflicting autoscalers.
//
// Floor 1: it knows the API, packages backlog and policy, and the Kubernetes types. It never reads a clock, speaks to a
// server, logs, or starts a goroutine. The same input always gives the same plan.
package plan
