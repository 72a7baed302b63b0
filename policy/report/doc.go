// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package report is what the controller says about a policy after its writes: the status with its conditions, when the
// status is due, and the events.
//
// Layer 1: it knows the API, packages backlog, policy, policy/plan and policy/served, and the Kubernetes types. It
// never reads a clock, speaks to a server, logs, or starts a goroutine. Read it in this order:
//
//	status.go        Status: conditions, decision, signals, capacity, checkpoint
//	conditions.go    the conditions, and those of the target and of our autoscaler; keda.go those with KEDA
//	backlog.go       BacklogKnown and SubscriptionVerified; objective.go ObjectiveMet and -Achievable
//	replicas.go      where the time of a start goes, and what a scale-down interrupts
//	ready.go         Ready, which is the first condition that is not True, ScalingLimited, ScalingActive and Stalled
//	findings.go      History: for how long the target has not followed, and messages have met the objective
//	due.go           Due: whether a status is worth a write
//	events.go        Events of the step from one status to the next
package report
